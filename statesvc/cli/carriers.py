"""`statesvc carriers [list | show CARRIER]`: carriers; `... quota CARRIER`: a carrier's share.

`... unmapped | map | unmap` is in `code_mappings`, `... draft` in `carrier_draft`.
"""

import argparse
import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from statesvc.cli.api_calls import Json
from statesvc.cli.code_mappings import configure_mapping, run_mapping
from statesvc.cli.command_error import CommandError
from statesvc.cli.operation_table import add_fields
from statesvc.cli.output import cell, write_answer, write_json, write_line
from statesvc.cli.service_calls import api_calls, calls_afar

_NO_BOUND: Final = "none"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for scripts")
    commands = parser.add_subparsers(dest="what")
    commands.add_parser(
        "list", help="this release's carriers, as these settings have them"
    ).add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="for scripts")
    show = commands.add_parser(
        "show",
        help="one carrier: how it is authenticated, read and limited, what it pushed, what waits",
    )
    show.add_argument("carrier", help="a carrier id")
    show.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="for scripts")
    configure_mapping(commands)
    draft = commands.add_parser(
        "draft", help="write a package that reads a carrier's samples, for you to correct"
    )
    draft.add_argument("carrier", help="the id that it is to have")
    draft.add_argument("samples", metavar="FILE", nargs="+", type=Path, help="a body as pushed")
    draft.add_argument(
        "--into", type=Path, help="a folder that is not there (default: CARRIER-statesvc)"
    )
    quota = commands.add_parser(
        "quota", help="set a carrier's part of each claim; in effect at the next one"
    )
    add_fields(
        quota,
        "change_quota",
        "carrier_id",
        "weight",
        "why",
        arguments=["carrier_id"],
        required=["why"],
    )
    quota.add_argument(
        "--in-flight",
        metavar="N",
        help=f"how many of its messages workers may hold at a time; {_NO_BOUND}: no bound",
    )
    quota.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="for scripts")


def run(options: argparse.Namespace) -> int:
    if options.what == "quota":
        return asyncio.run(_quota(options))
    if options.what == "draft":
        from statesvc.cli.carrier_draft import run_draft  # noqa: PLC0415 - loads all tables

        return run_draft(options)
    if options.what == "show":
        return asyncio.run(_show(options))
    if options.what not in {None, "list"}:
        return run_mapping(options)
    if calls_afar(options):
        raise CommandError(
            "the list of carriers is that of the machine's own release and settings: it calls no service",
            exit_code=2,
        )
    from statesvc.cli.carrier_list import write_carriers  # noqa: PLC0415 - loads them all

    write_carriers(as_json=options.json)
    return 0


async def _show(options: argparse.Namespace) -> int:
    """Show the answers of the calls, and on the service's own machine its settings."""
    shown: dict[str, Json] = {}
    if not calls_afar(options):
        from statesvc.cli.carrier_list import described_carrier  # noqa: PLC0415 - loads them all

        shown = await described_carrier(options.carrier)
    async with api_calls(options) as calls:
        # refuses what is no carrier, where the machine of this command knows none
        rollout = await calls.call("get_rollout", carrier_id=options.carrier)
        shown |= _in_operation(options.carrier, await calls.call("get_status"), rollout)
    if options.json:
        write_json(shown)
        return 0
    for name, value in shown.items():
        if value not in (None, "", [], {}):
            write_line(f"{name.replace('_', ' '):<18}{cell(value)}")
    return 0


def _in_operation(
    carrier_id: str, status: Mapping[str, Json], rollout: Mapping[str, Json]
) -> dict[str, Json]:
    """Return its pushes, backlog, readers and faults."""
    last = status["last_pushes"].get(carrier_id)
    states = ("hold", "stable", "candidate", "percent", "shadow", "changed_at", "changed_by", "why")
    return {
        "last_push": None if last is None else datetime.fromtimestamp(last, UTC).isoformat(),
        "pushed_in_an_hour": status["pushes_last_hour"].get(carrier_id),
        "queue": status["queue"]["carriers"].get(carrier_id),
        "rollout": None
        if rollout["changed_at"] is None
        else {name: rollout[name] for name in states},
        "findings": [
            finding["text"] for finding in status["troubles"] if finding["about"] == carrier_id
        ],
    }


async def _quota(options: argparse.Namespace) -> int:
    change: dict[str, Json] = {} if options.weight is None else {"weight": options.weight}
    if options.in_flight is not None:
        change["in_flight_max"] = _bound(options.in_flight)
    if not change:
        raise CommandError("name what to set: --weight, --in-flight or both", exit_code=2)
    async with api_calls(options) as calls:
        quotas = await calls.call(
            "change_quota", {**change, "why": options.why}, carrier_id=options.carrier_id
        )
    bound = quotas["in_flight_max"]
    bounded = "no bound" if bound is None else f"at most {bound} in flight"
    sentence = (
        f"{options.carrier_id}: weight {quotas['weight']:g}, {bounded}; in effect at the next claim"
    )
    write_answer(sentence, {"carrier_id": options.carrier_id, **quotas}, as_json=options.json)
    return 0


def _bound(text: str) -> int | None:
    if text == _NO_BOUND:
        return None
    if not text.isdecimal():
        raise CommandError(
            f"--in-flight must be a number, or {_NO_BOUND}; `statesvc rollout hold` lets none through",
            exit_code=2,
        )
    return int(text)
