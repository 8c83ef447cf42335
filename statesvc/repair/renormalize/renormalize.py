"""Reads a carrier's messages again and appends differences: safe to stop, and to run again.

A batch commits as a single append, under the locks of its shipments; a reading that equals the
reading in effect appends no event. So a second run finds no differences, and an interrupted run is
finished by the next.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

import orjson
from psycopg import AsyncConnection

from events.carriers.carrier import Carrier
from events.clear_part import known_texts, restored
from events.crypto.keyring import Keyring, body_context
from events.crypto.sealing import SealError, SealingKey
from events.entry.kinds import Provenance
from events.entry.packed_keys import known_from
from events.entry.proposal import DedupeKey, ExistingEvent, Proposal
from events.event import Event
from statesvc.append.append_batch import AppendBatch, propose
from statesvc.append.retry import RetryPolicy, run_transaction
from statesvc.append.transaction import append
from statesvc.bodies.find_bodies import find_bodies
from statesvc.bodies.sealed_message import unwrap_body_key, wrap_body_key
from statesvc.database.queries import queries
from statesvc.files.archive_folder import ArchivePath
from statesvc.files.body_record import BodyRecord
from statesvc.log.event_store import known_keys, read_packed_keys, read_streams
from statesvc.log.history import History
from statesvc.log.json_compression import decompress_json
from statesvc.queue.claim import Burial, Message
from statesvc.reading.code_mapping import Mappings
from statesvc.reading.read_message import Read, read_message
from statesvc.repair.renormalize.correction_plan import RenormalizeReport, plan_read, plan_unread
from statesvc.repair.renormalize.effective_readings import (
    Document,
    EffectiveReading,
    effective_readings,
)

_SQL = queries("statesvc.repair.renormalize", "renormalize")

_TRIES: Final = 6
# Time that a batch waits for shipments that other transactions have locked.
_LOCKED_SECONDS: Final = 30.0
Connection = AsyncConnection[Any]


@dataclass(frozen=True, slots=True)
class SettledMessage:
    """A message that was applied, as it is stored. `sealed_key` None: erased."""

    message_id: UUID
    received_at: datetime
    shipments: list[UUID]
    sealed_key: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RereadTask:
    """Settings with which messages are read again."""

    carrier: Carrier
    keyring: Keyring
    writer: str
    dry_run: bool = False
    notify: bool = True
    """False: subscriptions are not notified of corrections."""
    archive: ArchivePath | None = None
    """Folder of the bodies that are hot no longer, and of archived months of the log."""


async def reread(
    connection: Connection, task: RereadTask, message_ids: Sequence[UUID], mappings: Mappings
) -> RenormalizeReport:
    """Read a batch of messages again, and append the differences.

    Dead letters stay open. A message of another carrier (as `POST /v1/events` may bring) is
    read by the raw fields of its events.
    """
    parameters = {"message_ids": list(message_ids), "carrier_id": task.carrier.carrier_id}
    cursor = await connection.execute(_SQL["these_messages"], parameters, binary=True)
    settled = [SettledMessage(*row) for row in await cursor.fetchall()]
    report = await _batch(connection, task, settled, mappings)
    report.unopened |= set(message_ids) - {each.message_id for each in settled}
    return report


async def _batch(
    connection: Connection, task: RereadTask, batch: Sequence[SettledMessage], mappings: Mappings
) -> RenormalizeReport:
    async def transaction(connection: Connection) -> RenormalizeReport:
        return await _try_batch(connection, task, batch, mappings)

    policy = RetryPolicy(tries=_TRIES, locked_until=time.monotonic() + _LOCKED_SECONDS)
    return await run_transaction(lambda: nullcontext(connection), transaction, policy)


async def _try_batch(
    connection: Connection, task: RereadTask, batch: Sequence[SettledMessage], mappings: Mappings
) -> RenormalizeReport:
    report = RenormalizeReport(messages=len(batch))
    named = {shipment_id for settled in batch for shipment_id in settled.shipments}
    streams = await read_streams(connection, task.keyring, named)
    keys = {shipment_id: stream.key for shipment_id, stream in (await streams.rows()).items()}
    # before the transaction: reading archive files inside would hold the shipments' locks for
    # seconds
    bodies = await find_bodies(
        connection, task.archive, [(settled.message_id, settled.received_at) for settled in batch]
    )
    readings = [
        _read_again(
            settled,
            bodies.get(settled.message_id),
            keys,
            carrier=task.carrier,
            keyring=task.keyring,
            mappings=mappings,
        )
        for settled in batch
    ]
    said = [propose([read], task.keyring) if isinstance(read, Read) else [] for read in readings]
    shipments = named | {proposal.shipment_id for proposals in said for proposal in proposals}
    # in a transaction of its own: what was brought back stays, even if this batch is tried again
    await History(task.archive).restore_shipments(connection, shipments)
    async with connection.transaction():
        # first, and in order of their ids: histories are read under the locks, so no append comes
        # in between
        if not task.dry_run:
            await connection.execute(_SQL["lock_shipments"], {"shipment_ids": sorted(shipments)})
        caused = await _caused(connection, shipments, {settled.message_id for settled in batch})
        asked = await known_keys(
            connection, (proposal.key for proposals in said for proposal in proposals)
        )
        again = [_Again(*each) for each in zip(batch, readings, said, strict=True)]
        # keys of archived shipments have left their table: without them each event would look
        # missed
        packed = await read_packed_keys(connection, shipments)
        known = await asked.rows() | known_from(packed, chain.from_iterable(said))
        reads = _plan(task, again, _Logged(caused, known, mappings), report)
        if reads and not task.dry_run:
            applied = await append(AppendBatch(connection, task.keyring, reads, task.writer))
            report.take_changes(applied.changes, notifications=applied.notifications)
            # after the append, which made the streams of shipments that this reading names for the
            # first time
            for each in again:
                await _name_shipments(connection, task.keyring, each)
    return report


def _read_again(
    settled: SettledMessage,
    body: BodyRecord | None,
    keys: Mapping[UUID, SealingKey | None],
    *,
    carrier: Carrier,
    keyring: Keyring,
    mappings: Mappings,
) -> Read | Burial | None:
    """Read by the stable version and the mappings.

    None: it does not open any more, or is no longer stored (`body` None).
    """
    if body is None:
        return None
    try:
        key = unwrap_body_key(
            settled.sealed_key,
            settled.shipments,
            message_id=settled.message_id,
            keys=keys,
            keyring=keyring,
        )
    except SealError:
        return None
    if key is None:
        return None
    message = Message(
        message_id=settled.message_id,
        carrier_id=carrier.carrier_id,
        # no claim was made; the reader asks for a token and uses none
        token=settled.message_id,
        attempts=1,
        retries=0,
        received_at=settled.received_at,
        stage="raw",
        candidate=None,
        percent=0,
        shadow=False,
        sealed_key=keyring.inbox.wrap(key, body_context(settled.message_id)),
        commitment=body.commitment,
        sealed=body.sealed,
    )
    return read_message(
        message, keyring=keyring, carriers={carrier.carrier_id: carrier}, mappings=mappings
    )


@dataclass(frozen=True, slots=True)
class _Logged:
    caused: Mapping[UUID, Sequence[EffectiveReading]]
    known: Mapping[DedupeKey, ExistingEvent]
    mappings: Mappings


@dataclass(frozen=True, slots=True)
class _Again:
    settled: SettledMessage
    read: Read | Burial | None
    proposals: list[Proposal]


def _plan(
    task: RereadTask, again: Sequence[_Again], logged: _Logged, report: RenormalizeReport
) -> list[Read]:
    """Return the events to apply, the newest message first.

    Its correction moves the status to its end, and those of older messages do not.
    """
    carrier = _reading_clear(task)
    reads = []
    added: set[str] = set()
    for each in sorted(again, key=attrgetter("settled.received_at"), reverse=True):
        caused = logged.caused.get(each.settled.message_id, [])
        if isinstance(each.read, Read):
            if each.read.rejections:
                report.rejected.add(each.settled.message_id)
            missing = _missing(each.proposals, logged.known, added)
            report.added += len(missing)
            events = [*missing, *plan_read(caused, each.proposals, report)]
            if events:
                source = replace(each.read.source, notify=task.notify)
                reads.append(replace(each.read, source=source, events=tuple(events), rejections=()))
            continue
        report.unopened.add(each.settled.message_id)
        if events := plan_unread(caused, carrier, logged.mappings, report):
            reads.append(_unread(task, each.settled, caused[0].root, events, logged.mappings))
    return reads


def _reading_clear(task: RereadTask) -> Carrier:
    """Return the carrier, asked about raw fields as logged.

    The texts that it knows are found by their placeholders.
    """
    carrier = task.carrier
    known = known_texts(
        carrier.texts, carrier.carrier_id, task.keyring.carrier_digest(carrier.carrier_id)
    )
    return replace(carrier, reread=lambda raw: carrier.reread(restored(raw, known)))


async def _name_shipments(connection: Connection, keyring: Keyring, again: _Again) -> None:
    """Name shipments that the first reading did not name.

    Erasing any of them must make the body unreadable too.
    """
    settled, read = again.settled, again.read
    shipments = sorted(
        {*settled.shipments, *(proposal.shipment_id for proposal in again.proposals)}
    )
    if not isinstance(read, Read) or shipments == settled.shipments:
        return
    found = await read_streams(connection, keyring, shipments)
    streams = await found.rows()
    named = [shipment_id for shipment_id in shipments if shipment_id in streams]
    keys = {shipment_id: stream.key for shipment_id, stream in streams.items()}
    sealed = wrap_body_key(read.body_key, named, message_id=settled.message_id, keys=keys)
    await connection.execute(
        _SQL["name_shipments"],
        {
            "message_id": settled.message_id,
            "received_at": settled.received_at,
            "shipments": named,
            "sealed_key": sealed,
        },
    )


def _missing(
    proposals: Sequence[Proposal], known: Mapping[DedupeKey, ExistingEvent], added: set[str]
) -> list[Event]:
    """Return events that the first reading did not have at all."""
    found = []
    for proposal in proposals:
        if proposal.key not in known and proposal.event.event_id not in added:
            # two messages of the batch may both have it: one adds it, the other is its duplicate
            added.add(proposal.event.event_id)
            found.append(proposal.event)
    return found


def _unread(
    task: RereadTask,
    settled: SettledMessage,
    root: Document,
    events: Sequence[Event],
    mappings: Mappings,
) -> Read:
    """Return corrections from raw fields.

    The source is still the message, by the commitment to its body.
    """
    source = Provenance(
        message_id=settled.message_id,
        body_commitment=bytes.fromhex(root["body_commitment"]),
        received_at=settled.received_at,
        normalizer=task.carrier.carrier_id,
        normalizer_version=mappings.version(task.carrier.stable),
        notify=task.notify,
    )
    return Read(
        source=source,
        carrier_id=task.carrier.carrier_id,
        events=tuple(events),
        rejections=(),
        body_key=SealingKey.fresh(),
        sealed_key=b"",
    )


async def _caused(
    connection: Connection, shipments: set[UUID], messages: set[UUID]
) -> dict[UUID, list[EffectiveReading]]:
    cursor = await connection.execute(
        _SQL["histories"], {"shipment_ids": sorted(shipments)}, binary=True
    )
    histories: dict[UUID, list[Document]] = defaultdict(list)
    for shipment_id, canonical in await cursor.fetchall():
        histories[shipment_id].append(orjson.loads(decompress_json(canonical)))
    found: dict[UUID, list[EffectiveReading]] = defaultdict(list)
    for history in histories.values():
        for reading in effective_readings(history):
            message_id = UUID(reading.root["message_id"])
            if message_id in messages:
                found[message_id].append(reading)
    return found
