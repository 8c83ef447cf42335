"""Notifications and their fan-out entries, written in the transaction that made the change.

The database keeps a notification unique per (subscription, shipment, sequence) for ever. A
duplicate fails the write, so a fan-out entry never names a notification that was not made.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self
from uuid import UUID

from events.entry.kinds import offset_seconds
from events.event import value
from projections.notification_type import type_of_change
from projections.parcel import ParcelSource, SourceChange, SourceFilter
from projections.project import Change
from statesvc.database.queries import (
    Columns,
    Pending,
    Sender,
    byteas,
    encoded,
    ints,
    queries,
    send,
    texts,
    timestamps,
    uuids,
)
from statesvc.log.fanouts import Fanout
from statesvc.log.parcel_log import ParcelLog

_SQL = queries("statesvc.append", "outbox")
_COLUMNS: Final[Columns] = {
    "subscription_ids": uuids,
    "shipment_ids": uuids,
    "sequences": ints,
    "types": texts,
    "carrier_ids": texts,
    "tracking_numbers": texts,
    "from_statuses": texts,
    "to_statuses": texts,
    "created_ats": timestamps,
    "occurred_ats": timestamps,
    "occurred_offsets": ints,
    "leaf_hashes": byteas,
    "received_ats": timestamps,
    "traceparents": texts,
    "observed": texts,
}


@value(frozen=True, slots=True, kw_only=True)
class OutboxChange:
    """A change to notify subscribers of.

    `type`: `shipment.status_changed`, `shipment.updated` if the status stayed, or that of an
    observation. `number` is as compared; `tracking_number` as printed.
    """

    shipment_id: UUID
    sequence: int
    type: str
    carrier_id: str
    number: str = field(repr=False)
    tracking_number: str = field(repr=False)
    from_status: str
    to_status: str
    recorded_at: datetime
    occurred_at: datetime
    """With the offset in which the carrier stated it."""
    leaf_hash: bytes
    """Leaf hash of the event with the version `sequence`, which the notification names."""
    received_at: datetime | None = None
    """Time at which the message that caused it was acknowledged; None: no message did."""
    traceparent: str | None = None
    observed: str | None = None
    """Observation as its body states it, in JSON; `leaf_hash` is that of its entry, `sequence`
    negative.
    """

    @classmethod
    def of(cls, change: Change, traceparents: Mapping[UUID, str]) -> Self:
        proposal = change.row.proposal
        event = proposal.event
        return cls(
            shipment_id=change.shipment_id,
            sequence=change.row.version,
            type=type_of_change(change.from_status, change.to_status),
            carrier_id=event.carrier_id,
            number=proposal.event.numbered.number,
            tracking_number=event.tracking_number,
            from_status=change.from_status,
            to_status=change.to_status,
            recorded_at=change.row.recorded_at,
            occurred_at=event.occurred_at,
            leaf_hash=change.row.leaf.leaf_hash,
            received_at=proposal.source.received_at,
            traceparent=traceparents.get(proposal.source.message_id),
        )


class LiveSubscription(NamedTuple):
    """Filter of a live subscription; None: everything. `shipments` are `carrier_id/NUMBER`."""

    subscription_id: UUID
    carriers: frozenset[str] | None
    statuses: frozenset[str] | None
    types: frozenset[str] | None
    shipments: frozenset[str] | None
    once: bool = False
    """Each status of a parcel once, from the first source that reports it."""

    def matches(self, change: OutboxChange) -> bool:
        return (
            (self.statuses is None or change.to_status in self.statuses)
            and (self.types is None or change.type in self.types)
            and self.sources.lets_through(change)
        )

    @property
    def sources(self) -> SourceFilter:
        return SourceFilter(self.carriers, self.shipments)


# as the database has them
def _live_subscription(subscription_id: UUID, *row: Any) -> LiveSubscription:  # noqa: ANN401
    *filters, parcels = row
    carriers, statuses, types, shipments = (
        None if words is None else frozenset(words) for words in filters
    )
    return LiveSubscription(
        subscription_id, carriers, statuses, types, shipments, once=parcels == "once"
    )


@dataclass(slots=True)
class ParcelChanges:
    """Changes of one parcel that has several sources, in the order of the log."""

    parcel: ParcelLog
    changes: list[SourceChange] = field(default_factory=list)
    # by the sources that a filter lets through: many subscriptions share an answer, and the fold is
    # the cost
    _notified: dict[frozenset[UUID], set[tuple[UUID, int]]] = field(default_factory=dict)

    def notifies(self, subscription: LiveSubscription, change: OutboxChange) -> bool:
        source_filter = subscription.sources
        sources = frozenset(
            source.shipment_id
            for source in self.parcel.sources.values()
            if source_filter.lets_through(source)
        )
        if sources not in self._notified:
            self._notified[sources] = self.parcel.notified(source_filter, self.changes)
        return (change.shipment_id, change.sequence) in self._notified[sources]


def shared_parcel_changes(
    changes: Iterable[OutboxChange],
    parcel_ids: Mapping[UUID, UUID],
    parcels: Mapping[UUID, ParcelLog],
) -> dict[UUID, ParcelChanges]:
    """Return, by shipment, the changes of its parcel if that has several sources."""
    found = {each: ParcelChanges(parcel) for each, parcel in parcels.items()}
    for change in changes:
        if (of := found.get(parcel_ids.get(change.shipment_id, change.shipment_id))) is not None:
            source = of.parcel.sources.setdefault(
                change.shipment_id,
                ParcelSource(change.shipment_id, change.carrier_id, change.number),
            )
            of.changes.append(
                SourceChange(
                    source,
                    change.sequence,
                    change.from_status,
                    change.to_status,
                    change.occurred_at,
                )
            )
    several = {each: of for each, of in found.items() if of.parcel.has_several_sources}
    return {
        shipment_id: several[parcel_id]
        for shipment_id, parcel_id in parcel_ids.items()
        if parcel_id in several
    }


NO_PARCELS: Final[Mapping[UUID, ParcelChanges]] = MappingProxyType({})


async def read_live_subscriptions(
    connection: Sender, numbers: Iterable[tuple[str, str]]
) -> Pending[list[LiveSubscription]]:
    """Read the live subscriptions that may match changes of these carriers' numbers; paused ones
    too, because they collect.
    """
    distinct = set(numbers)
    parameters = {
        "carrier_ids": texts(list({carrier_id for carrier_id, _ in distinct})),
        "shipments": texts([f"{carrier_id}/{number}" for carrier_id, number in distinct]),
    }
    return await send(
        connection,
        _SQL["read_live_subscriptions"],
        parameters,
        lambda rows: [_live_subscription(*row) for row in rows],
    )


def fan_out(
    changes: Iterable[OutboxChange],
    subscribed: Sequence[LiveSubscription],
    parcels: Mapping[UUID, ParcelChanges] = NO_PARCELS,
) -> list[tuple[OutboxChange, list[UUID]]]:
    """Return each change that any subscription matches, with the subscriptions, sorted.

    `parcels`: `shared_parcel_changes`.
    """

    def is_notified(each: LiveSubscription, change: OutboxChange) -> bool:
        if not each.matches(change):
            return False
        parcel = parcels.get(change.shipment_id) if each.once else None
        return parcel is None or parcel.notifies(each, change)

    found = (
        # sorted: the entry's bytes are hashed, so the same fan-out must always give the same bytes
        (change, sorted(each.subscription_id for each in subscribed if is_notified(each, change)))
        for change in changes
    )
    return [(change, subscriptions) for change, subscriptions in found if subscriptions]


def fanout_of(change: OutboxChange, subscriptions: Sequence[UUID]) -> Fanout:
    return Fanout(
        shipment_id=change.shipment_id,
        sequence=change.sequence,
        event=change.leaf_hash,
        from_status=change.from_status,
        to_status=change.to_status,
        subscriptions=subscriptions,
        recorded_at=change.recorded_at,
        kind=None if change.observed is None else change.type,
    )


async def write_notifications(
    connection: Sender, fanned_out: Sequence[tuple[OutboxChange, Sequence[UUID]]], *, epoch: int
) -> int:
    """Put a notification into the outbox for each change and subscription; return their number.

    One statement in the caller's transaction; in a pipeline it does not wait. The caller wakes
    `OUTBOX` after its commit.
    """
    rows = [
        (
            subscription_id,
            c.shipment_id,
            c.sequence,
            c.type,
            c.carrier_id,
            c.tracking_number,
            c.from_status,
            c.to_status,
            c.recorded_at,
            c.occurred_at,
            offset_seconds(c.occurred_at),
            c.leaf_hash,
            c.received_at,
            c.traceparent,
            c.observed,
        )
        for c, subscriptions in fanned_out
        for subscription_id in subscriptions
    ]
    # `ON CONFLICT` is absent on purpose: a second notification of a change must fail the
    # transaction, not vanish
    if rows:
        await connection.execute(
            _SQL["write_notifications"], {"epoch": epoch, **encoded(rows, _COLUMNS)}
        )
    return len(rows)
