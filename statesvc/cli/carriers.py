"""`statesvc carriers`: what there is; `... allot CARRIER`: what a carrier gets; `... unmapped | map | unmap` is in `code_mappings`."""

import argparse
import asyncio
from typing import Final

from statesvc.cli.api_calls import Json
from statesvc.cli.code_mappings import configure_mapping, run_mapping
from statesvc.cli.command_error import CommandError
from statesvc.cli.operation_table import add_fields
from statesvc.cli.output import write_line
from statesvc.cli.service_calls import api_calls, calls_afar

_NO_BOUND: Final = "none"


def configure(parser: argparse.ArgumentParser) -> None:
    """What the commands take."""
    parser.add_argument("--json", action="store_true", help="for scripts")
    commands = parser.add_subparsers(dest="what", metavar="unmapped | map | unmap | allot")
    configure_mapping(commands)
    allot = commands.add_parser("allot", help="set a carrier's part of each claim; in effect at the next one")
    add_fields(allot, "change_allotment", "carrier_id", "weight", "why", arguments=["carrier_id"], required=["why"])
    allot.add_argument("--in-flight", metavar="N", help=f"how many of its messages workers may hold at a time; {_NO_BOUND}: no bound")


def run(options: argparse.Namespace) -> int:
    """Prints the table of carriers or the unknown codes, maps one, or allots."""
    if options.what == "allot":
        return asyncio.run(_allot(options))
    if options.what is not None:
        return run_mapping(options)
    if calls_afar(options):
        raise CommandError("the list of carriers is that of the machine's own release and settings: it calls no service", exit_code=2)
    from statesvc.cli.carrier_list import write_carriers  # noqa: PLC0415 - loads them all

    write_carriers(as_json=options.json)
    return 0


async def _allot(options: argparse.Namespace) -> int:
    """Sets what was named."""
    change: dict[str, Json] = {} if options.weight is None else {"weight": options.weight}
    if options.in_flight is not None:
        change["in_flight_max"] = _bound(options.in_flight)
    if not change:
        raise CommandError("name what to set: --weight, --in-flight or both", exit_code=2)
    async with api_calls(options) as calls:
        allotted = await calls.call("change_allotment", {**change, "why": options.why}, carrier_id=options.carrier_id)
    bound = allotted["in_flight_max"]
    bounded = "no bound" if bound is None else f"at most {bound} in flight"
    write_line(f"{options.carrier_id}: weight {allotted['weight']:g}, {bounded}; in effect at the next claim")
    return 0


def _bound(text: str) -> int | None:
    if text == _NO_BOUND:
        return None
    if not text.isdecimal():
        raise CommandError(f"--in-flight must be a number, or {_NO_BOUND}; `statesvc rollout hold` lets none through", exit_code=2)
    return int(text)
