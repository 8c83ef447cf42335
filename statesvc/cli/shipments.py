"""`statesvc shipments ...`: parcels on a terminal, without personal fields.

The API shows those, and records the reader.
"""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, cast

from statesvc.cli import declared
from statesvc.cli.api_calls import CallRefusedError, Calls, Json
from statesvc.cli.command_error import CommandError
from statesvc.cli.operation_table import add_fields
from statesvc.cli.output import cell, write_json, write_line, write_table
from statesvc.cli.presentation import Painted
from statesvc.cli.service_calls import api_calls
from statesvc.shipments.sought import searches
from statesvc.telemetry.colour import Colour

_PAGE: Final = 200
_EVENTS_MAX: Final = 1000
_LISTED: Final = 50
_NUMBER: Final = ("carrier_id", "tracking_number")
_FILTERS: Final = (
    "carrier_id",
    "status",
    "reason",
    "service",
    "stalled_for",
    "updated_after",
    "updated_before",
)
_COLOURS: Final = {
    "delivered": Colour.GREEN,
    "exception": Colour.RED,
    "lost": Colour.RED,
    "destroyed": Colour.RED,
    "returning": Colour.YELLOW,
}
_UNREAD: Final = "or it has not been read yet: `statesvc queue` says what waits"
_SHOWN: Final = (
    "shipment_id",
    "carrier_id",
    "tracking_number",
    "discriminator",
    "status",
    "reason",
    "status_since",
    "delivered_at",
    "estimated_delivery",
    "service",
    "attempts",
    "flags",
    "last_event_at",
    "version",
    "others",
)


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True)
    summary = "those that changed last, the newest first"
    action = actions.add_parser("list", help=summary)
    add_fields(action, "list_shipments", *_FILTERS)
    action.add_argument(
        "--limit", type=int, default=_LISTED, help=f"how many, up to {_PAGE} (default {_LISTED})"
    )
    action.add_argument("--json", action="store_true", help="for scripts")
    summary = "by its number, the last 4 or more characters of it, how it begins, or a shipper's reference"
    action = actions.add_parser("find", help=summary)
    wanted = action.add_mutually_exclusive_group(required=True)
    wanted.add_argument(
        "sought",
        nargs="?",
        metavar="text",
        help="`*12345`: only numbers that end so; `1Z99*`: only those that begin so",
    )
    wanted.add_argument(
        "--reference", help="an order id, or another value that the shipper attached"
    )
    action.add_argument("--json", action="store_true", help="for scripts")
    for name, summary in (("show", "where it is"), ("history", "how it got there")):
        action = actions.add_parser(name, help=summary)
        add_fields(
            action,
            "get_shipment",
            *_NUMBER,
            "discriminator",
            "as_of",
            arguments=_NUMBER,
            carrier_id="a carrier id",
        )
        action.add_argument("--json", action="store_true", help="for scripts")
    declared.add_declared(actions, "shipments")


def run(options: argparse.Namespace) -> int:
    """Print the shipment; return 1 where there is no such shipment."""
    return declared.run(options) if hasattr(options, "declared") else asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with api_calls(options) as calls:
        if options.action in {"list", "find"}:
            _write_list(
                await (_list if options.action == "list" else _find)(calls, options),
                as_json=options.json,
            )
            return 0
        given = {name: getattr(options, name) for name in (*_NUMBER, "discriminator", "as_of")}
        try:
            await (_show if options.action == "show" else _history)(
                calls, given, as_json=options.json
            )
        except CallRefusedError as error:
            if error.problem.get("code") != "not_found":
                raise
            raise CommandError(f"{error}, {_UNREAD}") from error
    return 0


async def _list(calls: Calls, options: argparse.Namespace) -> Sequence[Json]:
    wanted = {name: getattr(options, name) for name in _FILTERS}
    page = await calls.call("list_shipments", **wanted, order="newest", limit=options.limit)
    if not page["items"]:
        raise CommandError("no shipment fits")
    return cast("Sequence[Json]", page["items"])


async def _find(calls: Calls, options: argparse.Namespace) -> Sequence[Json]:
    for wanted in (
        searches(options.sought)
        if options.reference is None
        else [{"reference": options.reference}]
    ):
        page = await calls.call("list_shipments", **wanted, order="newest", limit=_PAGE)
        if page["items"]:
            return cast("Sequence[Json]", page["items"])
    what = (
        "this number, or one that ends or begins so"
        if options.reference is None
        else "a number with this reference"
    )
    raise CommandError(f"no carrier named {what}, {_UNREAD}")


def _write_list(found: Sequence[Json], *, as_json: bool) -> None:
    if as_json:
        write_json(found)
        return
    columns = (
        "carrier_id",
        "tracking_number",
        "discriminator",
        "status",
        "reason",
        "last_event_at",
        "shipment_id",
    )
    headings = ("CARRIER", "NUMBER", "DISCRIMINATOR", "STATUS", "REASON", "LAST EVENT", "ID")
    rows = [[_shown(name, shipment[name]) for name in columns] for shipment in found]
    numbers = {(shipment["carrier_id"], shipment["tracking_number"]) for shipment in found}
    # only the discriminator tells two parcels of one number apart
    write_table(
        headings, rows, wide=("ID",) if len(numbers) < len(found) else ("DISCRIMINATOR", "ID")
    )


def _shown(name: str, value: Json) -> object:
    return Painted(value, _COLOURS.get(value)) if name == "status" else cell(value) or None


async def _show(calls: Calls, given: Mapping[str, Json], *, as_json: bool) -> None:
    shipment = await calls.call("get_shipment", **given)
    shown = {name: shipment[name] for name in _SHOWN} | {
        "others": [other["discriminator"] for other in shipment["others"]]
    }
    if as_json:
        write_json(shown)
        return
    for name, value in shown.items():
        if value not in (None, "", []):
            write_line(f"{name:<20}{cell(value)}")


async def _history(calls: Calls, given: Mapping[str, Json], *, as_json: bool) -> None:
    page = await calls.call("get_shipment_history", **given, limit=_PAGE)
    events, observations = page["items"], page["observations"]
    while page["next_cursor"] is not None and len(events) < _EVENTS_MAX:
        page = await calls.call(
            "get_shipment_history", **given, limit=_PAGE, cursor=page["next_cursor"]
        )
        events += page["items"]
    if as_json:
        write_json(events)
        return
    write_table(
        ("VERSION", "OCCURRED", "STATUS", "REASON", "CODE", "PLACE", "RECORDED"),
        [_row(event) for event in events],
    )
    for observation in observations:
        at, since = cell(observation["recorded_at"]), cell(observation["since"])
        write_line(
            f"observed {at}: {observation['kind']}, {observation['hours']} h passed at {since}"
        )
    if page["next_cursor"] is not None:
        write_line(f"the first {len(events):,} events; the API pages through all")


def _row(event: Mapping[str, Json]) -> list[object]:
    place = ", ".join(
        filter(None, (event["location"][name] for name in ("city", "region", "country")))
    )
    return [
        event["version"],
        cell(event["occurred_at"]),
        event["status"] or event["kind"],
        event["reason"],
        event["carrier_code"],
        place or None,
        cell(event["recorded_at"]),
    ]
