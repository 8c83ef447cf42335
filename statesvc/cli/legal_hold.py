"""`statesvc legal-hold place | release CARRIER TRACKING --why ... | list`: whose bodies outlive every retention."""

import argparse
import asyncio
from dataclasses import asdict
from typing import Any, Final

from psycopg import AsyncConnection

from events.carriers import CARRIERS
from statesvc.bodies.legal_holds import HoldRefusal, list_holds, place_hold, release_hold
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import actor, service_connection
from statesvc.settings.service_settings import load_settings

LISTED_MAX: Final = 1000


def configure(parser: argparse.ArgumentParser) -> None:
    """What the commands take."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="place | release | list")
    for name, summary in (
        ("place", "keep the bodies of all shipments that bear the number, whatever their age"),
        ("release", "let retention go on"),
    ):
        command = commands.add_parser(name, help=summary)
        command.add_argument("carrier", help="a carrier id")
        command.add_argument("tracking", help="a tracking number, in any spelling")
        command.add_argument("--why", required=True, help="recorded in the log: the case, no personal data")
    listing = commands.add_parser("list", help="the holds that stand, the newest first")
    listing.add_argument("--carrier", help="of this carrier only")
    listing.add_argument("--all", action="store_true", help="also released ones")
    listing.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Runs one of them."""
    if options.carrier is not None and options.carrier not in CARRIERS:
        raise CommandError(f"no carrier {options.carrier!r}: `statesvc carriers` lists them", exit_code=2)
    if options.action != "list" and not options.why.strip():
        raise CommandError("--why must say why", exit_code=2)
    asyncio.run(_run(options))
    return 0


async def _run(options: argparse.Namespace) -> None:
    async with service_connection(load_settings()) as connection:
        match options.action:
            case "list":
                await _list(connection, options)
            case action:
                turn = place_hold if action == "place" else release_hold
                outcome = await turn(
                    connection, carrier_id=options.carrier, tracking_number=options.tracking, why=options.why, actor=actor()
                )
                if isinstance(outcome, HoldRefusal):
                    raise CommandError(outcome.value)
                write_line(f"{outcome.carrier_id} {outcome.number}: {'held' if action == 'place' else 'released'}")


async def _list(connection: AsyncConnection[Any], options: argparse.Namespace) -> None:
    holds, more = await list_holds(connection, carrier_id=options.carrier, released_too=options.all, limit=LISTED_MAX)
    if options.json:
        write_json([asdict(hold) for hold in holds])
        return
    if not holds:
        write_line("no legal hold stands")
        return
    write_table(
        ("CARRIER", "NUMBER", "SINCE", "BY", "WHY", "RELEASED"),
        [
            (
                hold.carrier_id,
                hold.tracking_number,
                f"{hold.placed_at:%Y-%m-%d %H:%M}",
                hold.placed_by,
                hold.why,
                None if hold.released_at is None else f"{hold.released_at:%Y-%m-%d %H:%M} {hold.released_by}: {hold.released_why}",
            )
            for hold in holds
        ],
    )
    if more is not None:
        write_line(f"... there are more than {LISTED_MAX}: GET /v1/legal-holds")
