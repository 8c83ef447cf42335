"""A pass over the due shipments: check again, and observe silence, once for its cause.

```
due (by index) --> the carrier is held, behind or silent? --yes--> put off
                   no --> lock streams > read states > look again > observe > notify
                          > next due time: ONE transaction
```

Streams are locked first, as an append locks them; a stream that another transaction holds is left
for the next pass, so no webhook waits for this.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson
from psycopg import AsyncConnection

from events.entry.kinds import Leaf, leaf, observation_document
from projections.expectations import Deadline, ExpectationRules, flagged, next_deadline, passed
from projections.notification_type import type_of_observation
from projections.state import ShipmentState
from statesvc.append.outbox import (
    NO_PARCELS,
    OutboxChange,
    ParcelChanges,
    fan_out,
    fanout_of,
    read_live_subscriptions,
    shared_parcel_changes,
    write_notifications,
)
from statesvc.database.queries import (
    Columns,
    byteas,
    encoded,
    ints,
    queries,
    texts,
    timestamps,
    uuids,
)
from statesvc.delivery.notification import stated_observation
from statesvc.log.batch_row import BatchStamp, begin_batch, write_batch
from statesvc.log.event_store import extend_streams
from statesvc.log.fanouts import append_fanouts
from statesvc.log.json_compression import compress_json, decompress_json
from statesvc.log.parcel_log import parcels_of, read_present_parcels
from statesvc.shipments.expectation_rules import rule_book

# Shipments of a transaction: some ten milliseconds, for which their streams are locked.
AT_ONCE: Final = 200
PUT_OFF_AT_ONCE: Final = 5_000

_SQL = queries("statesvc.addons.expectations", "observe")
_OBSERVATIONS: Final[Columns] = {
    "shipment_ids": uuids,
    "versions": ints,
    "kinds": texts,
    "sinces": timestamps,
    "canonicals": byteas,
}
_OBSERVED: Final[Columns] = {
    "shipment_ids": uuids,
    "flags": texts,
    "due_ats": timestamps,
    "states": byteas,
}
Connection = AsyncConnection[Any]


class DueShipment(NamedTuple):
    """A shipment after its due time, under its lock."""

    shipment_id: UUID
    carrier_id: str
    number: str
    tracking_number: str
    version: int
    recorded_at: datetime
    state: ShipmentState


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Something that did not happen, and its entry. `sequence`: of its notifications."""

    shipment: DueShipment
    deadline: Deadline
    sequence: int
    document: Mapping[str, Any] = field(repr=False)
    entry: Leaf = field(repr=False)


@dataclass(slots=True)
class WatchReport:
    """Result of a pass.

    `due`: shipments that it found; `put_off`: those of carriers that allow no conclusion now.
    """

    due: int = 0
    put_off: int = 0
    observations: list[Observation] = field(default_factory=list)
    notifications: int = 0
    at_once: int = AT_ONCE

    @property
    def is_full(self) -> bool:
        """True if more may be due."""
        return self.due >= self.at_once or self.put_off >= PUT_OFF_AT_ONCE


async def observe(connection: Connection, *, worker: str) -> WatchReport:
    """Run a pass, of `AT_ONCE` shipments at most. `worker` names the process in the log."""
    report = WatchReport(at_once=AT_ONCE)
    async with connection.transaction():
        # one watcher at a time in the whole service: two would read the same due rows and wait for
        # each other's locks
        alone = await (await connection.execute(_SQL["try_alone"])).fetchone()
        if alone != (True,):
            return report
        due = await (await connection.execute(_SQL["due"], {"limit": AT_ONCE})).fetchall()
        report.due = len(due)
        # before the streams are locked: silence of a carrier that we hold, or that is away, says
        # nothing of a parcel
        waiting = await carriers_to_put_off(connection, {carrier_id for _, carrier_id in due})
        if waiting:
            put_off = await connection.execute(
                _SQL["put_off"], {"carrier_ids": sorted(waiting), "limit": PUT_OFF_AT_ONCE}
            )
            report.put_off = put_off.rowcount
        if asked := [shipment_id for shipment_id, carrier_id in due if carrier_id not in waiting]:
            await _look_again(connection, asked, report, worker)
    return report


async def carriers_to_put_off(connection: Connection, carrier_ids: set[str]) -> set[str]:
    """Return the carriers that allow no conclusion now: held, behind or silent."""
    cursor = await connection.execute(_SQL["not_now"], {"carrier_ids": sorted(carrier_ids)})
    return {carrier_id for (carrier_id,) in await cursor.fetchall()}


async def _look_again(
    connection: Connection, asked: Sequence[UUID], report: WatchReport, worker: str
) -> None:
    # only now, and skipping what is locked: the due index was read without locks
    cursor = await connection.execute(_SQL["lock_due"], {"shipment_ids": uuids(asked)}, binary=True)
    locked = [shipment_id for (shipment_id,) in await cursor.fetchall()]
    cursor = await connection.execute(
        _SQL["read_due"], {"shipment_ids": uuids(locked)}, binary=True
    )
    found = [
        DueShipment(*row)._replace(state=ShipmentState.from_json(decompress_json(row[-1])))
        for row in await cursor.fetchall()
    ]
    if not found:
        return
    # after the locks, as in an append: times and batch ids grow along each stream
    now = await (await begin_batch(connection)).rows()
    rules = rule_book(now.expectations)
    rows = []
    for shipment in found:
        observations, row = _looked_at(
            shipment, rules.of(shipment.carrier_id, shipment.state.service), now
        )
        report.observations += observations
        rows.append(row)
    # also those without an observation: each gets its next due time, or it would be found again at
    # once
    await connection.execute(_SQL["save_observed"], encoded(rows, _OBSERVED))
    if report.observations:
        await write_observations(connection, report, now, worker)


def _looked_at(
    shipment: DueShipment, rules: ExpectationRules, now: BatchStamp
) -> tuple[list[Observation], tuple[Any, ...]]:
    noticed = passed(shipment.state, rules, recorded_at=shipment.recorded_at, now=now.recorded_at)
    observations = [
        _observation(shipment, deadline, sequence, rules, now)
        for deadline, sequence in zip(noticed.deadlines, noticed.sequences, strict=True)
    ]
    state = noticed.state
    following = next_deadline(state, rules, recorded_at=shipment.recorded_at)
    flags = ",".join(sorted([*state.flags, *flagged(state)]))
    return observations, (
        shipment.shipment_id,
        flags,
        following.due_at if following else None,
        compress_json(state.to_json()),
    )


def _observation(
    shipment: DueShipment,
    deadline: Deadline,
    sequence: int,
    rules: ExpectationRules,
    now: BatchStamp,
) -> Observation:
    document = observation_document(
        shipment_id=shipment.shipment_id,
        version=shipment.version,
        kind=deadline.kind.value,
        since=deadline.due_at,
        details={
            "cause": deadline.cause,
            "hours": deadline.hours,
            "rules": rules.revision,
            "sequence": sequence,
            "status": shipment.state.status.value,
        },
        recorded_at=now.recorded_at,
    )
    return Observation(
        shipment=shipment,
        deadline=deadline,
        sequence=sequence,
        document=document,
        entry=leaf(document, epoch=now.epoch),
    )


async def write_observations(
    connection: Connection, report: WatchReport, now: BatchStamp, worker: str
) -> None:
    """Write fan-outs, notifications, observations, and their batch row."""
    observations = report.observations
    numbers = {(one.shipment.carrier_id, one.shipment.number) for one in observations}
    subscribed = await (await read_live_subscriptions(connection, numbers)).rows()
    changes = list(map(_change, observations))
    fanned_out = fan_out(changes, subscribed, await _parcels(connection, changes))
    report.notifications = await write_notifications(connection, fanned_out, epoch=now.epoch)
    # fan-outs before observations: the order of kinds within a batch
    leaf_hashes = await append_fanouts(
        connection, [fanout_of(change, to) for change, to in fanned_out], now=now
    )
    await connection.execute(
        _SQL["insert_observations"],
        {
            "recorded_at": now.recorded_at,
            "batch_id": now.batch_id,
            "before": len(leaf_hashes),
            **encoded(_rows(observations), _OBSERVATIONS),
        },
    )
    await extend_streams(
        connection, (one.shipment.shipment_id for one in observations), now.recorded_at
    )
    leaf_hashes += [one.entry.leaf_hash for one in observations]
    await write_batch(
        connection,
        batch_id=now.batch_id,
        recorded_at=now.recorded_at,
        leaf_hashes=leaf_hashes,
        writer=worker,
    )


async def _parcels(
    connection: Connection, changes: Sequence[OutboxChange]
) -> Mapping[UUID, ParcelChanges]:
    """Return the parcels of several sources.

    A subscription with each status once gets it from the source that reported it.
    """
    parcel_ids = await parcels_of(connection, (change.shipment_id for change in changes))
    if not parcel_ids:
        return NO_PARCELS
    return shared_parcel_changes(
        changes,
        parcel_ids,
        await (await read_present_parcels(connection, set(parcel_ids.values()))).rows(),
    )


def _rows(observations: Iterable[Observation]) -> list[tuple[Any, ...]]:
    return [
        (
            one.shipment.shipment_id,
            one.shipment.version,
            one.deadline.kind.value,
            one.deadline.due_at,
            compress_json(one.entry.canonical),
        )
        for one in observations
    ]


def _change(one: Observation) -> OutboxChange:
    shipment, status = one.shipment, one.shipment.state.status.value
    return OutboxChange(
        shipment_id=shipment.shipment_id,
        sequence=one.sequence,
        type=type_of_observation(one.deadline.kind),
        carrier_id=shipment.carrier_id,
        number=shipment.number,
        tracking_number=shipment.tracking_number,
        from_status=status,
        to_status=status,
        recorded_at=datetime.fromisoformat(one.document["recorded_at"]),
        occurred_at=one.deadline.due_at,
        leaf_hash=one.entry.leaf_hash,
        observed=orjson.dumps(stated_observation(one.document)).decode(),
    )
