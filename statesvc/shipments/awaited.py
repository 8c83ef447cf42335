"""Awaited numbers, as entries of the log have them: at an earlier time, and after an erasure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import orjson
from psycopg import AsyncConnection

from events.identity.ids import awaited_id, shipment_id
from statesvc.database.queries import queries
from statesvc.log.actions import SHIPMENT, Action
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.as_of import Horizon
from statesvc.shipments.references import AttachedTo, AwaitedNumber

# Days for which a number shows that it was never heard of.
SHOWN_DAYS: Final = 30
AWAIT: Final = "await_shipment"
_STOP: Final = "stop_awaiting_shipment"
_SQL = queries("statesvc.shipments", "awaited")
Connection = AsyncConnection[Any]


class AwaitedHours(NamedTuple):
    """Hours within which a scan must come; `observed_at`: when it was observed that none came."""

    hours: int
    awaited_at: datetime
    due_at: datetime
    observed_at: datetime | None


async def forget_awaited(
    connection: Connection, number: AttachedTo, *, actor: str, why: Mapping[str, str]
) -> list[Action]:
    """Forget the number in the caller's transaction; return what the caller records of it."""
    row = await _row(connection, "delete_awaited", number._asdict())
    return [] if row is None else [awaited_action(_STOP, number, {"hours": row[0], **why}, actor)]


async def awaited_number_at(
    connection: Connection, number: AttachedTo, horizon: Horizon
) -> AwaitedNumber | None:
    """Return the awaited number as sealed then; None: not awaited.

    It had no sealed event by then.
    """
    asked = {
        "target": _target(number),
        "verbs": [AWAIT, _STOP],
        "awaited_id": awaited_id(*number),
        "size": horizon.size,
    }
    # from the entries: the table has only what is awaited now
    cursor = await connection.execute(_SQL["sealed_entries"], asked, prepare=False, binary=True)
    awaited = None
    for (canonical,) in await cursor.fetchall():
        awaited = _after(awaited, orjson.loads(decompress_json(canonical)))
    if awaited is None:
        return None
    if awaited.observed_at is not None:
        is_shown = horizon.at < awaited.observed_at + timedelta(days=SHOWN_DAYS)
        return AwaitedNumber(*number, awaited.observed_at, never_heard=True) if is_shown else None
    # another source of the parcel had spoken by then: the number is heard of, and no entry says
    # so
    if horizon.at >= awaited.due_at and await _row(
        connection, "heard_of_parcel", {"parcel_id": shipment_id(*number, ""), "at": horizon.at}
    ) == (True,):
        return None
    return AwaitedNumber(*number, awaited.awaited_at)


def _after(awaited: AwaitedHours | None, entry: Mapping[str, Any]) -> AwaitedHours | None:
    recorded_at, details = datetime.fromisoformat(entry["recorded_at"]), entry["details"]
    if entry["entry"] == "observation":
        since, due_at = map(datetime.fromisoformat, (details["cause"], entry["since"]))
        return AwaitedHours(details["hours"], since, due_at, recorded_at)
    if entry["verb"] == _STOP:
        return None
    if "since" in details:
        since = datetime.fromisoformat(details["since"])
    else:  # recorded by 0.1.0
        kept = awaited if awaited is not None and awaited.observed_at is None else None
        since = kept.awaited_at if kept is not None else recorded_at
    return AwaitedHours(details["hours"], since, since + timedelta(hours=details["hours"]), None)


def awaited_action(verb: str, number: AttachedTo, details: Mapping[str, Any], actor: str) -> Action:
    return Action(actor=actor, verb=verb, target=_target(number), details=details)


def _target(number: AttachedTo) -> str:
    return f"{SHIPMENT}{number.carrier_id} {number.number}"


# as the query has it
async def _row(connection: Connection, query: str, parameters: Mapping[str, Any]) -> Any:  # noqa: ANN401
    return await (await connection.execute(_SQL[query], parameters, binary=True)).fetchone()
