"""`statesvc carriers`: what there is; `... allot CARRIER`: what a carrier gets; `... unmapped | map | unmap` is in `code_mappings`."""

import argparse
import asyncio
from typing import Any, Final

import psycopg

from events.carriers import CARRIERS
from events.carriers.carrier import Carrier
from statesvc.cli.arguments import carrier_named
from statesvc.cli.carrier_authentication import accepted, binds_body, described, open_points, secret_state
from statesvc.cli.code_mappings import configure_mapping, run_mapping
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import actor, connect, service_connection
from statesvc.database.embedded import locate
from statesvc.database.embedded_error import NoDataError
from statesvc.database.wakeups.channels import INBOX
from statesvc.database.wakeups.waker import notify
from statesvc.inbox.allotment import IN_FLIGHT_MAX, WEIGHT_MAX, WEIGHT_MIN, Allotment, allot, allotment_of, list_allotments
from statesvc.settings.service_settings import Settings, load_settings

_NO_BOUND: Final = "none"


def configure(parser: argparse.ArgumentParser) -> None:
    """What the commands take."""
    parser.add_argument("--json", action="store_true", help="for scripts")
    commands = parser.add_subparsers(dest="what", metavar="unmapped | map | unmap | allot")
    configure_mapping(commands)
    _configure_allot(commands.add_parser("allot", help="set a carrier's part of each claim; in effect at the next one"))


def run(options: argparse.Namespace) -> int:
    """Prints the table of carriers or the unknown codes, maps one, or allots."""
    settings = load_settings()
    if options.what == "allot":
        return asyncio.run(_allot(settings, options))
    if options.what is not None:
        return run_mapping(options)
    allotted = asyncio.run(_allotments(settings))
    carriers = [_described(carrier, settings, allotted) for _, carrier in sorted(CARRIERS.items())]
    if options.json:
        write_json(carriers)
    else:
        write_table(
            ("CARRIER", "NAME", "VERSIONS", "AUTHENTICATION", "SECRET", "WEIGHT", "IN FLIGHT MAX", "FORMATS", "OPEN"),
            [
                (
                    carrier["carrier_id"],
                    carrier["name"],
                    " ".join(f"{version}*" if version == carrier["stable"] else version for version in carrier["versions"]),
                    ", ".join(carrier["authentication"]),
                    carrier["secret"],
                    carrier["weight"],
                    carrier["in_flight_max"],
                    ", ".join(carrier["formats"]),
                    "; ".join(carrier["open"]) or None,
                )
                for carrier in carriers
            ],
        )
        write_line("* reads the messages now")
    return 0


def _described(carrier: Carrier, settings: Settings, allotted: dict[str, Allotment] | None) -> dict[str, Any]:
    allotment = None if allotted is None else allotted.get(carrier.carrier_id, Allotment(carrier_id=carrier.carrier_id))
    schemes = accepted(carrier, settings)
    return {
        "carrier_id": carrier.carrier_id,
        "name": carrier.name,
        "versions": list(carrier.normalizers),
        "stable": carrier.stable,
        "formats": list(carrier.formats),
        "authentication": described(schemes),
        "binds_body": binds_body(schemes),
        "weight": allotment and allotment.weight,
        "in_flight_max": allotment and allotment.in_flight_max,
        "secret": secret_state(carrier, settings),
        "open": open_points(carrier, settings),
        "addresses": [str(network) for network in settings.webhook_networks.get(carrier.carrier_id.upper(), ())],
        "key_set": settings.webhook_key_sets.get(carrier.carrier_id.upper()),
    }


def _configure_allot(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("carrier", help="a carrier id")
    parser.add_argument(
        "--weight", type=float, metavar="W", help=f"its part of each claim, where others have 1 ({WEIGHT_MIN:g} to {WEIGHT_MAX:g})"
    )
    parser.add_argument("--in-flight", metavar="N", help=f"how many of its messages workers may hold at a time; {_NO_BOUND}: no bound")
    parser.add_argument("--why", required=True, help="recorded in the log")


async def _allot(settings: Settings, options: argparse.Namespace) -> int:
    """Sets what was named."""
    carrier_named(options.carrier)
    if options.weight is None and options.in_flight is None:
        raise CommandError("name what to set: --weight, --in-flight or both", exit_code=2)
    if options.weight is not None and not WEIGHT_MIN <= options.weight <= WEIGHT_MAX:
        raise CommandError(f"--weight must be {WEIGHT_MIN:g} to {WEIGHT_MAX:g}", exit_code=2)
    bound = None if options.in_flight is None else _bound(options.in_flight)
    async with service_connection(settings) as connection:
        current = await allotment_of(connection, options.carrier)
        weight = current.weight if options.weight is None else options.weight
        in_flight_max = current.in_flight_max if options.in_flight is None else bound
        await allot(connection, options.carrier, weight=weight, in_flight_max=in_flight_max, why=options.why, actor=actor())
        await notify(connection, INBOX)
    bounded = "no bound" if in_flight_max is None else f"at most {in_flight_max} in flight"
    write_line(f"{options.carrier}: weight {weight:g}, {bounded}; in effect at the next claim")
    return 0


async def _allotments(settings: Settings) -> dict[str, Allotment] | None:
    """By carrier, where one was given; None where no database answers, for the list of carriers needs none."""
    try:
        found = locate(settings.database)
        if found is None:
            return None
        async with await connect(found.service, direct=not found.is_pooled) as connection:
            return {allotment.carrier_id: allotment for allotment in await list_allotments(connection)}
    except (NoDataError, psycopg.Error):
        return None


def _bound(text: str) -> int | None:
    if text == _NO_BOUND:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= IN_FLIGHT_MAX:
        raise CommandError(
            f"--in-flight must be 1 to {IN_FLIGHT_MAX}, or {_NO_BOUND}; `statesvc rollout hold` lets none through", exit_code=2
        )
    return int(text)
