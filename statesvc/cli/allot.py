"""`statesvc carriers allot CARRIER`: how much of each claim a carrier gets, and how many of its messages may be in flight."""

import argparse
from typing import Final

import psycopg

from events.carriers import CARRIERS
from statesvc.cli.command_error import CommandError
from statesvc.cli.operator import actor
from statesvc.cli.output import write_line
from statesvc.cli.session import connect, service_connection
from statesvc.database.dsns import Dsns
from statesvc.database.embedded import attach
from statesvc.database.queries import queries
from statesvc.database.wakeups.channels import INBOX
from statesvc.inbox.allotment import IN_FLIGHT_MAX, WEIGHT_MAX, WEIGHT_MIN, Allotment, allot, allotment_of, list_allotments
from statesvc.settings.service_settings import Settings

_WAKEUP = queries("statesvc.database.wakeups", "wakeup")
_NO_BOUND: Final = "none"


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("carrier", help="a carrier id")
    parser.add_argument(
        "--weight", type=float, metavar="W", help=f"its part of each claim beside others' 1 ({WEIGHT_MIN:g} to {WEIGHT_MAX:g})"
    )
    parser.add_argument("--in-flight", metavar="N", help=f"how many of its messages workers may hold at a time; {_NO_BOUND}: no bound")
    parser.add_argument("--why", required=True, help="stands in the log")


async def run_allot(settings: Settings, options: argparse.Namespace) -> int:
    """Sets what was named."""
    if options.carrier not in CARRIERS:
        raise CommandError(f"no carrier {options.carrier!r}: `statesvc carriers` lists them", exit_code=2)
    if options.weight is None and options.in_flight is None:
        raise CommandError("name what to set: --weight, --in-flight or both", exit_code=2)
    if options.weight is not None and not WEIGHT_MIN <= options.weight <= WEIGHT_MAX:
        raise CommandError(f"--weight must be {WEIGHT_MIN:g} to {WEIGHT_MAX:g}", exit_code=2)
    bound = None if options.in_flight is None else _bound(options.in_flight)
    async with service_connection(settings) as connection:
        standing = await allotment_of(connection, options.carrier)
        weight = standing.weight if options.weight is None else options.weight
        in_flight_max = standing.in_flight_max if options.in_flight is None else bound
        await allot(connection, options.carrier, weight=weight, in_flight_max=in_flight_max, why=options.why, actor=actor())
        await connection.execute(_WAKEUP["notify"], {"channels": [INBOX]})
    bounded = "no bound" if in_flight_max is None else f"at most {in_flight_max} in flight"
    write_line(f"{options.carrier}: weight {weight:g}, {bounded}; in effect at the next claim")
    return 0


async def standing_allotments(settings: Settings) -> dict[str, Allotment] | None:
    """By carrier, where one was given; None where no database answers, for the list of carriers needs none."""
    found = Dsns.from_settings(settings.database) or attach(settings.database.data_dir)
    if found is None:
        return None
    try:
        async with await connect(found.service) as connection:
            return {allotment.carrier_id: allotment for allotment in await list_allotments(connection)}
    except psycopg.Error:
        return None


def _bound(text: str) -> int | None:
    if text == _NO_BOUND:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= IN_FLIGHT_MAX:
        raise CommandError(
            f"--in-flight must be 1 to {IN_FLIGHT_MAX}, or {_NO_BOUND}; `statesvc rollout hold` lets none through", exit_code=2
        )
    return int(text)
