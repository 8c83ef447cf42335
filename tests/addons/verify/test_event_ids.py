"""`verify` computes again what ids, facts and shipments follow from an entry's clear part."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest

from events.carriers import CARRIERS
from events.crypto.keyring import Keyring
from events.crypto.sealing import SealingKey
from events.entry.assemble import StreamHead, assemble_conflicts, assemble_events
from events.entry.kinds import NO_PREVIOUS, Provenance
from events.entry.proposal import decide
from events.errors import UnreadableMessageError
from events.event import Event
from events.identity.ids import identify
from statesvc.addons.verify.event_ids import (
    CORRECTIONS,
    ESTIMATES,
    FACTS,
    OTHER_ANCHORS,
    SIGNERS,
    TEXTS,
    conflict_fault,
    event_ids,
)
from statesvc.append.append_batch import AppendBatch, propose
from statesvc.append.transaction import append
from statesvc.log import entry_documents
from statesvc.reading.read_message import Read
from tests.events.carriers.carrier_fixtures import fixture_paths, read
from tests.events.carriers.more_envelope_pairs import PAIRS
from tests.world.attack import places, verify
from tests.world.log_builder import MASTER, MORNING, LogBuilder, scan

KEYRING = Keyring(master=MASTER, digest_key=bytes(32), inbox=SealingKey.fresh())


def said(carrier_id: str, events: Iterable[Event]) -> Read:
    source = Provenance(
        message_id=uuid4(),
        body_commitment=bytes(32),
        received_at=MORNING,
        normalizer=carrier_id,
        normalizer_version="1",
    )
    return Read(
        source=source,
        carrier_id=carrier_id,
        events=tuple(events),
        rejections=(),
        body_key=SealingKey.fresh(),
        sealed_key=b"",
    )


def events_of(carrier_id: str, body: bytes) -> list[Event]:
    digest = KEYRING.carrier_digest(carrier_id)
    try:
        readings = read(CARRIERS[carrier_id], body).readings
    except UnreadableMessageError:
        return []
    return [
        identify(reading, carrier_id=carrier_id, digest=digest)
        for reading in readings
        if reading.tracking_number
    ]


@pytest.mark.parametrize("carrier_id", sorted(CARRIERS))
def test_what_the_log_holds_of_every_carrier_gives_its_ids_again(carrier_id: str) -> None:
    bodies = [path.read_bytes() for path in fixture_paths(carrier_id)]
    bodies += [
        body for pair in PAIRS if pair.carrier_id == carrier_id for body in (pair.one, pair.other)
    ]
    messages = [said(carrier_id, events_of(carrier_id, body)) for body in bodies]
    proposals = propose(messages, KEYRING)
    decision = decide(proposals, {})
    heads: dict[UUID, StreamHead] = {
        each: StreamHead(0, NO_PREVIOUS, MORNING, MORNING, SealingKey.fresh())
        for each in decision.shipments()
    }
    taken = {proposal.key for proposal in decision.appends} | {key for key, _ in decision.aliases}
    for row in assemble_events(decision.appends, heads, clock=MORNING, epoch=1):
        document = entry_documents.event(row.leaf.canonical)
        with_key, without = event_ids(document, KEYRING.carrier_digest), event_ids(document, None)
        assert (with_key.fault, without.fault) == (None, None)
        assert (with_key.carrier_id, with_key.event_id, with_key.facts) == (
            *row.proposal.key,
            row.proposal.event.facts_digest,
        )
        assert {(carrier_id, alias) for alias in with_key.aliases} <= taken
        assert set(with_key.unchecked) <= {SIGNERS, OTHER_ANCHORS, TEXTS}
    for conflict in assemble_conflicts(decision.conflicts, {}, clock=MORNING, epoch=1):
        assert (
            conflict_fault(
                entry_documents.conflict(conflict.leaf.canonical), KEYRING.carrier_digest
            )
            is None
        )


async def append_as(log: LogBuilder, event: Event, **changes: Any) -> None:
    """Append as a worker does that gets something wrong."""
    async with log.connection.transaction():
        await append(
            AppendBatch(
                log.connection,
                log.keyring,
                [said(event.carrier_id, [replace(event, **changes)])],
                "worker-1",
            )
        )


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"event_id": "d1-260301-aaaaaaaaaaaaaaaaaaaaaaaaaa"}, "event_id"),
        ({"occurred_at": MORNING}, "event_id"),
        ({"carrier_code": "T/X1", "raw": scan("1Z1", 1, None, code="X2").raw}, "event_id"),
    ],
)
async def test_a_derived_id_that_does_not_follow_from_the_event_is_named(
    database: Any, event_log: LogBuilder, changes: dict[str, Any], field: str
) -> None:
    event = identify(
        scan("1Z0001", 7, None), carrier_id="ups", digest=event_log.keyring.carrier_digest("ups")
    )
    await append_as(event_log, event, **changes)
    await event_log.seal()
    (fault,) = verify(database, master_keys=None).faults
    assert (fault.table, fault.field) == ("event", field)


async def test_an_estimate_under_another_id_is_named_where_the_digest_key_is_at_hand(
    database: Any, event_log: LogBuilder
) -> None:
    await event_log.append(scan("1Z0001", 7, None))
    event = identify(
        scan("1Z0001", 7, None), carrier_id="ups", digest=event_log.keyring.carrier_digest("ups")
    )
    await event_log.append(scan("1Z0001", 7, None, estimated_delivery="2026-03-05"))
    assert places(verify(database)) == []
    changes = {
        "event_id": "e1-aaaaaaaaaaaaaaaaaaaaaaaaaa",
        "anchor": event.event_id,
        "estimated_delivery": "2026-03-06",
    }
    await append_as(event_log, event, **changes)
    await event_log.seal()
    (fault,) = verify(database).faults
    assert (fault.table, fault.field, fault.why) == (
        "event",
        "event_id",
        "is not the one that follows from its anchor and its estimate",
    )
    report = verify(database, master_keys=None)
    assert report.consistent
    assert report.unchecked == {ESTIMATES: 2}


@pytest.mark.usefixtures("own_processes")
async def test_what_could_not_be_checked_is_counted(database: Any, sealed_log: LogBuilder) -> None:
    await sealed_log.append(scan("1Z0001", 0, None, signed_by="A. Person"))
    assert verify(database).unchecked == verify(database, processes=2).unchecked == {SIGNERS: 1}
    assert verify(database, master_keys=None).unchecked == {SIGNERS: 1, FACTS: 1}
    assert CORRECTIONS not in verify(database).unchecked


def test_a_conflict_that_states_other_facts_than_its_digest_is_named() -> None:
    digest = KEYRING.carrier_digest("ups")
    one, other = (
        identify(scan("1Z1", 1, None, code=code, native_id="7"), carrier_id="ups", digest=digest)
        for code in ("A", "B")
    )
    decision = decide(propose([said("ups", [one]), said("ups", [other])], KEYRING), {})
    (row,) = assemble_conflicts(decision.conflicts, {}, clock=MORNING, epoch=1)
    document = orjson.loads(row.leaf.canonical)
    changed = entry_documents.conflict(orjson.dumps(document | {"raw": {"code": "A"}}))
    assert conflict_fault(changed, KEYRING.carrier_digest) == (
        "facts_digest",
        "is not that of what it states",
    )
    assert conflict_fault(changed, None) is None
    moved = entry_documents.conflict(orjson.dumps(document | {"tracking_number": "1Z2"}))
    assert conflict_fault(moved, None) == (
        "claimed_shipment_id",
        "is not the id of its carrier, number and discriminator",
    )
