"""`statesvc carriers`, `... unmapped`, `... map | unmap CARRIER`: what the codes mean; `... allot CARRIER`: what a carrier gets."""

import argparse
import asyncio
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from events.carriers import CARRIERS
from events.carriers.carrier import Carrier
from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Reason, Status
from statesvc.cli.arguments import carrier_named
from statesvc.cli.carrier_authentication import accepted, binds_body, described, open_points, secret_state
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import actor, connect, service_connection
from statesvc.database.dsns import Dsns
from statesvc.database.embedded import attach
from statesvc.database.keyring_store import load_keyring
from statesvc.database.queries import queries
from statesvc.database.wakeups.channels import INBOX
from statesvc.inbox.allotment import IN_FLIGHT_MAX, WEIGHT_MAX, WEIGHT_MIN, Allotment, allot, allotment_of, list_allotments
from statesvc.inbox.rollouts.code_mapping import (
    COUNT_MAX,
    Code,
    Mapping,
    add_mapping,
    clear_code,
    codes_by_category,
    current_mappings,
    is_text,
)
from statesvc.repair.dead_letters.dead_letter import DeadLetterFilter
from statesvc.repair.dead_letters.listing import NEWEST, list_dead_letters, occurrences_of
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import Settings, load_settings

PAGE = 200
_EXAMPLES_SHOWN: Final = 2
_NO_BOUND: Final = "none"
_WAKEUP = queries("statesvc.database.wakeups", "wakeup")


def configure(parser: argparse.ArgumentParser) -> None:
    """What the commands take."""
    parser.add_argument("--json", action="store_true", help="for scripts")
    commands = parser.add_subparsers(dest="what", metavar="unmapped | map | unmap | allot")
    unmapped = commands.add_parser("unmapped", help="codes that no mapping knows yet, and codes read by their category only")
    unmapped.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="for scripts")
    for name, summary in (("map", "say what a code means"), ("unmap", "read a code as the normalizer says, again")):
        command = commands.add_parser(name, help=f"{summary}; in effect at the next claim, without a deploy")
        command.add_argument("carrier", help="a carrier id")
        command.add_argument("--type", help="the type as the carrier prints it, where it prints one")
        command.add_argument("--code", help="the code as the carrier prints it")
        command.add_argument("--why", default="", help="stands in the log")
        if name == "map":
            meaning = command.add_mutually_exclusive_group(required=True)
            statuses = [status.value for status in Status if status is not Status.UNKNOWN]
            meaning.add_argument("--status", choices=statuses, metavar="STATUS", help=f"it is a scan: {', '.join(statuses)}")
            meaning.add_argument("--info", action="store_true", help="it informs and never moves the status")
            command.add_argument("--reason", choices=[reason.value for reason in Reason], metavar="REASON", help="why, of a scan")
    _configure_allot(commands.add_parser("allot", help="set a carrier's part of each claim; in effect at the next one"))


def run(options: argparse.Namespace) -> int:
    """Prints the table of carriers or the unknown codes, maps one, or allots."""
    settings = load_settings()
    if options.what == "allot":
        return asyncio.run(_allot(settings, options))
    if options.what == "unmapped":
        return asyncio.run(_unmapped(settings, as_json=options.json))
    if options.what is not None:
        return asyncio.run(_map(settings, options))
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


async def _map(settings: Settings, options: argparse.Namespace) -> int:
    carrier_named(options.carrier)
    if options.type is None and options.code is None:
        raise CommandError("name the code: --code, --type or both, as `statesvc carriers unmapped` prints them", exit_code=2)
    meaning = None
    if options.what == "map":
        if options.info and options.reason:
            raise CommandError("--reason belongs to a scan: name its --status", exit_code=2)
        kind = Kind.INFO if options.info else Kind.SCAN
        meaning = Meaning(kind, Status(options.status) if options.status else None, Reason(options.reason) if options.reason else None)
    code: Code = (options.carrier, options.type, options.code)
    async with service_connection(settings) as connection:
        if is_text(code):
            keyring = await load_keyring(connection, await open_master_keys(settings, connection))
            code = clear_code(code, keyring.carrier_digest(options.carrier))
        revision = await add_mapping(connection, code, meaning, why=options.why, actor=actor())
    before = "dead-letters replay --cause unknown_code" if options.what == "map" else "renormalize"
    write_line(f"revision {revision}; in effect at the next claim. What was read before: statesvc {before} --carrier {options.carrier}")
    return 0


async def _unmapped(settings: Settings, *, as_json: bool) -> int:
    async with service_connection(settings) as connection:
        mapped: dict[Code, Mapping] = {
            (row.carrier_id, row.raw_type, row.raw_code): row for row in await current_mappings(connection) if row.kind is not None
        }
        found = [*await _unknown(connection, mapped), *await _by_category(connection)]
    if as_json:
        write_json(found)
    elif found:
        columns = ("carrier_id", "code", "read", "events", "shipments", "since", "dead_letter_id", "mapped")
        rows = [[*(row[column] for column in columns), " ".join(map(str, row["examples"][:_EXAMPLES_SHOWN]))] for row in found]
        write_table([*(column.upper() for column in columns), "EXAMPLES"], rows)
    else:
        write_line("every code that was pushed is mapped")
    return 0


async def _unknown(connection: AsyncConnection[Any], mapped: dict[Code, Mapping]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    before: int | None = NEWEST
    while before is not None:
        dead_letters, before = await list_dead_letters(connection, DeadLetterFilter(kind="code", is_open=True), before=before, limit=PAGE)
        for each in dead_letters:
            occurrences = await occurrences_of(connection, each)
            mapping = mapped.get((each.carrier_id, each.raw_type, each.raw_code))
            found.append(
                {
                    "dead_letter_id": each.dead_letter_id,
                    "carrier_id": each.carrier_id,
                    "type": each.raw_type,
                    "code": _code(each.raw_type, each.raw_code),
                    "read": "not at all",
                    "events": occurrences.events if occurrences else 0,
                    "shipments": occurrences.shipments if occurrences else 0,
                    "counts_capped": occurrences.counts_capped if occurrences else False,
                    "since": each.created_at.isoformat(timespec="seconds"),
                    "mapped": f"{mapping.status or mapping.kind}: replay its dead letter" if mapping else None,
                    "examples": occurrences.message_ids if occurrences else [],
                }
            )
    return found


async def _by_category(connection: AsyncConnection[Any]) -> list[dict[str, Any]]:
    found = await codes_by_category(connection)
    capped = sum(each.events for each in found) >= COUNT_MAX
    return [
        {
            "dead_letter_id": None,
            "carrier_id": each.carrier_id,
            "type": each.raw_type,
            "code": _code(each.raw_type, each.raw_code),
            "read": "by category",
            "events": each.events,
            "shipments": each.shipments,
            "counts_capped": capped,
            "since": each.since.isoformat(timespec="seconds"),
            "mapped": None,
            "examples": each.message_ids,
        }
        for each in found
    ]


def _code(raw_type: str | None, raw_code: str | None) -> str:
    return "/".join(part for part in (raw_type, raw_code) if part) or "(no code)"


def _configure_allot(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("carrier", help="a carrier id")
    parser.add_argument(
        "--weight", type=float, metavar="W", help=f"its part of each claim, where others have 1 ({WEIGHT_MIN:g} to {WEIGHT_MAX:g})"
    )
    parser.add_argument("--in-flight", metavar="N", help=f"how many of its messages workers may hold at a time; {_NO_BOUND}: no bound")
    parser.add_argument("--why", required=True, help="stands in the log")


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
        await connection.execute(_WAKEUP["notify"], {"channels": [INBOX]})
    bounded = "no bound" if in_flight_max is None else f"at most {in_flight_max} in flight"
    write_line(f"{options.carrier}: weight {weight:g}, {bounded}; in effect at the next claim")
    return 0


async def _allotments(settings: Settings) -> dict[str, Allotment] | None:
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
