"""A shipment's audit trail: what was said, what we concluded, what contradicted it, what we told, each with when we knew it.

One window of versions is one consistent snapshot: events of the window, the transitions and notifications that they caused, and the
conflicts recorded since the window before.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import orjson
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row

from events.crypto.keyring import Keyring
from statesvc.bodies.find_bodies import body_locations
from statesvc.database.queries import queries
from statesvc.shipments.event_document import Seal, event_json, statement
from statesvc.shipments.find import Shipment
from statesvc.shipments.horizon import Horizon
from statesvc.shipments.personal import Opener

_SQL = queries("statesvc.shipments", "audit_trail")

EVENTS_MAX: Final = 1_000
"""Events in one answer; a shipment with more is read in several."""

_ALWAYS: Final = {"recorded_after": datetime(1, 1, 1, tzinfo=UTC), "recorded_upto": datetime(9999, 1, 1, tzinfo=UTC)}
_NOT_KNOWN_THEN: Final = {"count": None, "last_seen_at": None}
_NOT_TOLD_THEN: Final = {"waiting": None, "next_attempt_at": None}
"""Counters and queues are of today; only entries of the log tell what was."""
_SOURCE: Final = ("message_id", "received_at", "body_commitment", "normalizer", "normalizer_version", "part_commitment")
_PLACE: Final = ("batch_id", "ordinal", "leaf_hash", "sealed_at", "log_index")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """The four lists of the contract as JSON documents; `next_after` is the version to go on after, None at the end."""

    events: list[DictRow]
    transitions: list[DictRow]
    conflicts: list[DictRow]
    notifications: list[DictRow]
    next_after: int | None


async def trail(
    connection: AsyncConnection[Any],
    shipment: Shipment,
    *,
    after: int,
    limit: int,
    keyring: Keyring | None,
    horizon: Horizon | None = None,
) -> Trail:
    """The window after version `after`. `keyring` None: no scope `pii`. Runs inside the caller's snapshot.

    `horizon`: only what was sealed by then; `shipment` is the one that we knew, which bounds events and transitions.
    """
    window: dict[str, Any] = {**shipment.recorded(), "after": after, **_ALWAYS}

    async def read(query: str, **other: int) -> list[DictRow]:
        cursor = connection.cursor(binary=True, row_factory=dict_row)
        return await (await cursor.execute(_SQL[query], window | other)).fetchall()

    # and the event before the window: conflicts recorded up to it were shown with the window before
    rows = await read("recorded_events", after=after - 1, limit=limit + 2)
    if rows and rows[0]["version"] == after:
        window["recorded_after"] = rows.pop(0)["recorded_at"]
    shown = rows[:limit]
    is_last = len(rows) <= limit
    window["upto"] = shown[-1]["version"] if shown else after
    if not is_last:
        window["recorded_upto"] = shown[-1]["recorded_at"]

    attempts: dict[str, list[DictRow]] = defaultdict(list)
    for attempt in await read("attempts"):
        if horizon is None or horizon.holds(attempt["log_index"]):
            attempts[attempt.pop("webhook_id")].append(attempt)
    opener = None if keyring is None else shipment.opener(keyring)
    events = [_event(row, opener) for row in shown]
    conflicts = [
        _conflict(row, keyring) if horizon is None else _conflict(row, keyring) | _NOT_KNOWN_THEN
        for row in await read("conflicts")
        if horizon is None or horizon.holds(row["log_index"])
    ]
    await _place_bodies(connection, [*events, *conflicts])
    return Trail(
        events=events,
        transitions=await read("transitions"),
        conflicts=conflicts,
        notifications=[
            row | {"attempts": attempts[row["webhook_id"]]} | ({} if horizon is None else _NOT_TOLD_THEN)
            for row in await read("notifications")
        ],
        next_after=None if is_last else window["upto"],
    )


async def _place_bodies(connection: AsyncConnection[Any], statements: Sequence[DictRow]) -> None:
    """Says of each statement where the body of its message is."""
    messages = {UUID(each["message_id"]): datetime.fromisoformat(each["received_at"]) for each in statements}
    found = await body_locations(connection, list(messages.items()))
    for each in statements:
        each["body_place"] = found[UUID(each["message_id"])].value


def _event(row: DictRow, opener: Opener | None) -> DictRow:
    document = orjson.loads(row["canonical"])
    shown = event_json(document, Seal(row["sealed_at"], row["log_index"]), sealed_part=row["sealed_part"], opener=opener)
    shown |= {name: document.get(name) for name in (*_SOURCE, "previous_hash")}
    return shown | {name: row[name] for name in _PLACE}


def _conflict(row: DictRow, keyring: Keyring | None) -> DictRow:
    document = orjson.loads(row["canonical"])
    shown = statement(document, None if keyring is None else _conflict_part(row, keyring))
    shown |= {name: row[name] for name in ("shipment_id", "claimed_shipment_id", "recorded_at", "count", "last_seen_at")}
    return shown | {name: document.get(name) for name in _SOURCE} | {name: row[name] for name in _PLACE}


def _conflict_part(row: DictRow, keyring: Keyring) -> DictRow:
    holder = Opener.of_stream(keyring, row["shipment_id"], row["holder_key"])
    claimed = Opener.of_stream(keyring, row["claimed_shipment_id"], row["claimed_key"]) if row["claimed_exists"] else None
    return holder.part_of_conflict(row["event_id"], row["sealed_part"], claimed)
