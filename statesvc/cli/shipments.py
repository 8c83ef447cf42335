"""`statesvc shipments find|show|history`: one parcel for a terminal, without personal fields: the API shows those, and records to whom."""

import argparse
import asyncio
from typing import Any

from psycopg import AsyncConnection

from events.recipes import number_of
from statesvc.cli.arguments import carrier_named
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import service_connection
from statesvc.database.keyring_store import load_keyring
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import Settings, load_settings
from statesvc.shipments.find import FoundShipment, OtherDiscriminators, find_shipment
from statesvc.shipments.observation_trail import read_observations
from statesvc.shipments.references import AttachedTo, ReferenceTooCommonError, numbers_of_reference
from statesvc.shipments.shipment_list import BEGINNING, ShipmentFilter, list_with_awaited, numbers_in_any_spelling
from statesvc.shipments.timeline import timeline

_EVENTS_MAX = 1000
_FOUND_MAX = 200


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    summary = "by its number alone, or by a shipper's reference"
    action = actions.add_parser("find", help=summary, description="which carriers' shipments bear a number, or belong to an order")
    wanted = action.add_mutually_exclusive_group(required=True)
    wanted.add_argument("tracking", nargs="?")
    wanted.add_argument("--reference", help="an order id, or another value that the shipper attached")
    action.add_argument("--json", action="store_true", help="for scripts")
    for name, summary in (("show", "where it is"), ("history", "how it got there")):
        action = actions.add_parser(name, help=summary, description=summary)
        action.add_argument("carrier")
        action.add_argument("tracking")
        action.add_argument("--discriminator", help="which of the shipments that share the number (default: the latest)")
        action.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Prints it. 1: there is no such shipment."""
    if options.action == "find":
        return asyncio.run(_find(options))
    carrier_named(options.carrier)
    return asyncio.run(_run(options))


async def _find(options: argparse.Namespace) -> int:
    settings = load_settings()
    async with service_connection(settings) as connection:
        if options.reference is None:
            wanted = ShipmentFilter(numbers=numbers_in_any_spelling(options.tracking))
        else:
            wanted = ShipmentFilter(attached_to=await _attached_to(connection, settings, options.reference))
        found, _ = await list_with_awaited(connection, wanted, after=BEGINNING, limit=_FOUND_MAX)
    if not found:
        what = "this number" if options.reference is None else "a number with this reference"
        raise CommandError(f"no carrier named {what}, or it has not been read yet: `statesvc queue` says what waits")
    if options.json:
        write_json(found)
        return 0
    write_table(
        ("CARRIER", "NUMBER", "DISCRIMINATOR", "STATUS", "REASON", "LAST EVENT", "ID"),
        [
            (
                each["carrier_id"],
                each["tracking_number"],
                each["discriminator"] or None,
                each["status"],
                each["reason"],
                each["last_event_at"],
                each["shipment_id"],
            )
            for each in found
        ],
    )
    return 0


async def _attached_to(connection: AsyncConnection[Any], settings: Settings, reference: str) -> list[AttachedTo]:
    keyring = await load_keyring(connection, await open_master_keys(settings, connection))
    try:
        return await numbers_of_reference(connection, keyring, reference)
    except ReferenceTooCommonError as error:
        raise CommandError(str(error)) from None


async def _run(options: argparse.Namespace) -> int:
    async with service_connection(load_settings()) as connection:
        found = await find_shipment(
            connection,
            carrier_id=options.carrier,
            number=number_of(options.carrier, options.tracking),
            discriminator=options.discriminator,
        )
        if found is None:
            raise CommandError(f"{options.carrier} said nothing of this number, or has not been read yet: `statesvc queue` says what waits")
        if isinstance(found, OtherDiscriminators):
            raise CommandError(f"{found.count} shipments bear the number, none with this discriminator: leave it out for the latest")
        if options.action == "show":
            _show(found, as_json=options.json)
        else:
            await _history(connection, found, as_json=options.json)
    return 0


def _show(found: FoundShipment, *, as_json: bool) -> None:
    shown = found.shipment
    fields: dict[str, Any] = {
        "shipment_id": shown.shipment_id,
        "carrier_id": shown.carrier_id,
        "tracking_number": shown.tracking_number,
        "discriminator": shown.discriminator,
        "status": shown.status,
        "reason": shown.reason,
        "status_since": shown.status_since,
        "delivered_at": shown.delivered_at,
        "estimated_delivery": shown.estimated_delivery,
        "service": shown.service,
        "attempts": shown.attempts,
        "flags": list(shown.flags),
        "last_event_at": shown.last_event_at,
        "version": shown.version,
        "others": [other.discriminator for other in found.others],
    }
    if as_json:
        write_json(fields)
        return
    for name, value in fields.items():
        if value not in (None, "", []):
            write_line(f"{name:<20}{', '.join(value) if isinstance(value, list) else value}")


async def _history(connection: AsyncConnection[Any], found: FoundShipment, *, as_json: bool) -> None:
    page = await timeline(connection, found.shipment, after=None, limit=_EVENTS_MAX, opener=None)
    events: list[Any] = [] if page is None else list(page.events)
    if as_json:
        write_json(events)
        return
    write_table(
        ("VERSION", "OCCURRED", "STATUS", "REASON", "CODE", "PLACE", "RECORDED"),
        [
            (
                event["version"],
                event["occurred_at"],
                event["status"] or event["kind"],
                event["reason"],
                event["carrier_code"],
                ", ".join(filter(None, (event["location"]["city"], event["location"]["region"], event["location"]["country"]))) or None,
                event["recorded_at"],
            )
            for event in events
        ],
    )
    for each in await read_observations(connection, found.shipment):
        write_line(f"observed {each['recorded_at']}: {each['kind']}, {each['hours']} h passed at {each['since']}")
    if page is not None and page.next_after is not None:
        write_line(f"the first {_EVENTS_MAX:,} events; the API pages through all")
