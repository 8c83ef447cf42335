"""A shipment's audit trail: statements, conclusions, contradictions and notifications, with times.

One window of versions is one consistent snapshot: events of the window, the transitions and
notifications that they caused, and the conflicts and observations recorded since the window before.
All of it comes from entries of the log, except for waiting notifications and counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlsplit
from uuid import UUID

import orjson
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row

from events.crypto.keyring import Keyring
from events.entry.kinds import leaf_hash_of
from statesvc.bodies.find_bodies import BodyLocation, body_locations
from statesvc.database.queries import queries
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.as_of import Horizon
from statesvc.shipments.find import StoredShipment, recorded_outside
from statesvc.shipments.models import (
    AuditAttempt,
    AuditConflict,
    AuditEvent,
    AuditNotification,
    AuditPersonalRead,
    AuditTransition,
    EntryPosition,
    MessageSource,
    ShipmentObservation,
)
from statesvc.shipments.notification_trail import (
    LoggedNotification,
    LoggedTry,
    NotificationKey,
    notifications_of,
    type_of,
)
from statesvc.shipments.personal import HIDDEN, OpenedPart, Opener
from statesvc.shipments.timeline import Seal, shipment_event, stated_event

_SQL = queries("statesvc.shipments", "audit_trail")
T = TypeVar("T")

READINGS_MAX: Final = 1_000

_ALWAYS: Final = {
    "recorded_after": datetime(1, 1, 1, tzinfo=UTC),
    "recorded_upto": datetime(9999, 1, 1, tzinfo=UTC),
}
# Counters and queues are of today; only entries of the log show the past.
_NO_COUNTERS: Final = {"count": None, "last_seen_at": None}


@dataclass(frozen=True, slots=True)
class Receiver:
    name: str | None
    host: str

    @property
    def label(self) -> str:
        """The name; without a name, the host."""
        return self.name or self.host


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTrail:
    """The lists of the contract; `next_after` is the version to go on after, None at the end."""

    events: list[AuditEvent]
    transitions: list[AuditTransition]
    conflicts: list[AuditConflict]
    observations: list[ShipmentObservation]
    notifications: list[AuditNotification]
    readings: list[AuditPersonalRead]
    next_after: int | None


async def read_audit_trail(
    connection: AsyncConnection[Any],
    shipment: StoredShipment,
    *,
    after: int,
    limit: int,
    keyring: Keyring | None,
    horizon: Horizon | None = None,
) -> AuditTrail:
    """Return the window after version `after`, inside the caller's snapshot.

    `keyring` None: no scope `pii`. `horizon`: only entries sealed by then; `shipment` is its
    state then, which bounds events and transitions.
    """
    window: dict[str, Any] = {**shipment.recorded(), "after": after, **_ALWAYS}

    async def read(query: str, **other: object) -> list[DictRow]:
        cursor = connection.cursor(binary=True, row_factory=dict_row)
        rows = await (await cursor.execute(_SQL[query], window | other, prepare=False)).fetchall()
        return [read_document(row) if "canonical" in row else row for row in rows]

    # and the event before the window: conflicts recorded up to it were shown with the window before
    rows = await read("recorded_events", after=after - 1, limit=limit + 2)
    if rows and rows[0]["version"] == after:
        window["recorded_after"] = rows.pop(0)["recorded_at"]
    # the row beyond the limit only says that there is a next window
    shown = rows[:limit]
    is_last = len(rows) <= limit
    window["upto"] = shown[-1]["version"] if shown else after
    if not is_last:
        # not at the end: what was recorded after the last event has no later window to be shown in
        window["recorded_upto"] = shown[-1]["recorded_at"]

    def was_sealed(row: DictRow) -> bool:
        return horizon is None or horizon.holds(row["log_index"])

    contradictions = [
        *filter(was_sealed, await read("conflicts", **await recorded_outside(connection, shipment)))
    ]
    bodies = await _bodies(connection, [row["document"] for row in (*shown, *contradictions)])
    messages = {row["document"]["message_id"] for row in (*shown, *contradictions)}
    first_received_at = min(
        (datetime.fromisoformat(row["document"]["received_at"]) for row in shown),
        default=shipment.first_recorded_at,
    )
    # a message may have waited for days: its readings are older than its first event
    first_received_at = min(first_received_at, shipment.first_recorded_at)
    targets = [
        f"shipment {shipment.shipment_id}",
        *(f"message {message_id}" for message_id in sorted(messages)),
    ]
    read_by = await read(
        "readings", targets=targets, first_received_at=first_received_at, limit=READINGS_MAX
    )
    readings = [*filter(was_sealed, read_by)][::-1]
    observations = await read_observations(
        connection,
        shipment,
        recorded=(window["recorded_after"], window["recorded_upto"]),
        horizon=horizon,
    )
    # before the fan-outs, which are asked for by the events and the observations of the window
    window["observed"] = [each["sequence"] for each in observations]
    opener = None if keyring is None else shipment.opener(keyring)
    notified = notifications_of(
        [(row["document"], row) for row in filter(was_sealed, await read("fanouts"))],
        [(row["document"], row) for row in filter(was_sealed, await read("ends"))],
    )
    keys = {
        "subscription_ids": [key.subscription_id for key in notified],
        "sequences": [key.sequence for key in notified],
    }
    waiting = None
    # what waits is of today: at an earlier time it cannot be known any more
    if horizon is None:
        waiting = {
            NotificationKey(row["sequence"], row["subscription_id"]): row["available_at"]
            for row in await read("waiting", **keys)
        }
    receivers = await read_receivers(connection, (key.subscription_id for key in notified))
    named = {
        row["version"]: (row["document"]["occurred_at"], row["document"]["recorded_at"])
        for row in shown
    }
    named |= {each["sequence"]: (each["since"], each["recorded_at"]) for each in observations}
    return AuditTrail(
        events=[_event(row, bodies, opener) for row in shown],
        transitions=[_transition(row) for row in await read("transitions")],
        conflicts=[
            _conflict(row if horizon is None else row | _NO_COUNTERS, bodies, keyring)
            for row in contradictions
        ],
        observations=observations,
        notifications=[
            _notification(
                key,
                one,
                *named[key.sequence],
                receiver=receivers.get(key.subscription_id),
                waiting=waiting,
            )
            for key, one in notified.items()
        ],
        readings=_checked(AuditPersonalRead, readings),
        next_after=None if is_last else window["upto"],
    )


def _notification(
    key: NotificationKey,
    one: LoggedNotification,
    occurred_at: datetime,
    created_at: datetime,
    *,
    receiver: Receiver | None,
    waiting: Mapping[NotificationKey, datetime] | None,
) -> AuditNotification:
    """Return the notification; its times are those of the event or observation.

    `waiting`: until when they wait today; None: not asked.
    """
    return {
        "webhook_id": one.webhook_id,
        "subscription_id": UUID(key.subscription_id),
        "receiver": None if receiver is None else receiver.label,
        "type": type_of(one),
        "from": one.from_status,
        "to": one.to_status,
        "sequence": key.sequence,
        "occurred_at": occurred_at,
        "created_at": created_at,
        "fanouts": [
            {
                **_place(row),
                "recorded_at": row["recorded_at"],
                "replayed": document.get("replayed", False),
            }
            for document, row in one.fanouts
        ],
        "outcome": one.outcome,
        "covered_by": one.covered_by,
        "waiting": None if waiting is None else key in waiting,
        "next_attempt_at": None if waiting is None else waiting.get(key),
        "attempts": [_attempt(each) for each in one.tries],
    }


def _attempt(each: LoggedTry) -> AuditAttempt:
    row, document = each.entry, each.document
    return {
        **_place(row),
        "number": document["number"],
        "started_at": document["started_at"],
        "recorded_at": row["recorded_at"],
        "duration_ms": document["duration_ms"],
        "outcome": document["outcome"],
        "status_code": document.get("status_code"),
        "body_commitment": document["body_commitment"],
    }


def _checked(model: type[T], rows: list[DictRow]) -> list[T]:
    """Check rows with the model's members as columns; other columns are a defect."""
    if rows and rows[0].keys() != model.__annotations__.keys():
        raise TypeError(
            f"the query's columns are not those of {model.__name__}:"
            f" {', '.join(rows[0].keys() ^ model.__annotations__.keys())}"
        )
    return cast("list[T]", rows)


async def _bodies(
    connection: AsyncConnection[Any], documents: Sequence[dict[str, Any]]
) -> Mapping[UUID, BodyLocation]:
    messages = {
        UUID(each["message_id"]): datetime.fromisoformat(each["received_at"]) for each in documents
    }
    return await body_locations(connection, list(messages.items()))


def _event(row: DictRow, bodies: Mapping[UUID, BodyLocation], opener: Opener | None) -> AuditEvent:
    document, seal = row["document"], Seal(row["sealed_at"], row["log_index"])
    return {
        **shipment_event(document, seal, sealed_part=row["sealed_part"], opener=opener),
        **_source(document, bodies),
        **_place(row),
        "previous_hash": document["previous_hash"],
    }


def _conflict(
    row: DictRow, bodies: Mapping[UUID, BodyLocation], keyring: Keyring | None
) -> AuditConflict:
    document = row["document"]
    return {
        **stated_event(document, HIDDEN if keyring is None else _conflict_part(row, keyring)),
        **_source(document, bodies),
        **_place(row),
        "shipment_id": row["shipment_id"],
        "claimed_shipment_id": row["claimed_shipment_id"],
        "recorded_at": row["recorded_at"],
        "count": row["count"],
        "last_seen_at": row["last_seen_at"],
    }


def _source(document: dict[str, Any], bodies: Mapping[UUID, BodyLocation]) -> MessageSource:
    return {
        "message_id": document["message_id"],
        "received_at": document["received_at"],
        "body_commitment": document["body_commitment"],
        "normalizer": document["normalizer"],
        "normalizer_version": document["normalizer_version"],
        "part_commitment": document.get("part_commitment"),
        "body_place": bodies[UUID(document["message_id"])],
    }


def _transition(row: DictRow) -> AuditTransition:
    document = row["document"]
    return {
        "from": document["from"],
        "to": document["to"],
        "event_id": document["event_id"],
        "sequence": document["sequence"],
        "worker": document["worker"],
        "message_id": document["message_id"],
        "recorded_at": row["recorded_at"],
        **_place(row),
    }


def _place(row: DictRow) -> EntryPosition:
    return {
        "batch_id": row["batch_id"],
        "ordinal": row["ordinal"],
        "leaf_hash": row["leaf_hash"],
        "sealed_at": row["sealed_at"],
        "log_index": row["log_index"],
    }


def _conflict_part(row: DictRow, keyring: Keyring) -> OpenedPart:
    holder = Opener.of_stream(keyring, row["shipment_id"], row["holder_key"])
    claimed = (
        Opener.of_stream(keyring, row["claimed_shipment_id"], row["claimed_key"])
        if row["claimed_exists"]
        else None
    )
    return holder.part_of_conflict(row["event_id"], row["sealed_part"], claimed)


_EVER: Final = (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))


async def read_observations(
    connection: AsyncConnection[Any],
    shipment: StoredShipment,
    *,
    recorded: tuple[datetime, datetime] = _EVER,
    horizon: Horizon | None = None,
) -> list[ShipmentObservation]:
    """Read those recorded after the first instant and up to the second, in order.

    `horizon`: only entries sealed by then.
    """
    cursor = connection.cursor(binary=True, row_factory=dict_row)
    asked = {"recorded_after": recorded[0], "recorded_upto": recorded[1], **shipment.recorded()}
    rows = await (
        await cursor.execute(_SQL["observations_of_shipment"], asked, prepare=False)
    ).fetchall()
    return [
        _observation(read_document(row))
        for row in rows
        if horizon is None or horizon.holds(row["log_index"])
    ]


def read_document(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row of an entry with its `document` and `leaf_hash`, which follow
    from its canonical bytes.
    """
    canonical = decompress_json(row["canonical"])
    return {**row, "document": orjson.loads(canonical), "leaf_hash": leaf_hash_of(canonical).hex()}


def _observation(row: Mapping[str, Any]) -> ShipmentObservation:
    document = row["document"]
    details = document["details"]
    return {
        "kind": document["kind"],
        "since": document["since"],
        "cause": details["cause"],
        "hours": details["hours"],
        "status": details["status"],
        "rules": details["rules"],
        "sequence": details["sequence"],
        "version": document["version"],
        "recorded_at": row["recorded_at"],
        "batch_id": row["batch_id"],
        "ordinal": row["ordinal"],
        "leaf_hash": row["leaf_hash"],
        "sealed_at": row["sealed_at"],
        "log_index": row["log_index"],
    }


async def read_receivers(
    connection: AsyncConnection[Any], subscription_ids: Iterable[str]
) -> dict[str, Receiver]:
    """Read the receivers by subscription id. A deleted subscription keeps its name."""
    cursor = await connection.execute(
        _SQL["receivers"], {"subscription_ids": sorted(set(subscription_ids))}
    )
    return {
        subscription_id: Receiver(name, urlsplit(url).hostname or "")
        for subscription_id, url, name in await cursor.fetchall()
    }
