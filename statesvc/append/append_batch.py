"""The value that the append transaction works on: the messages, and the results of each step."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from events.crypto.keyring import DIGEST_BYTES, Keyring
from events.crypto.sealing import SealingKey
from events.entry.assemble import ConflictRow, EventRow, StreamHead
from events.entry.proposal import Decision, DedupeKey, ExistingEvent, Proposal, without_personal
from events.event import Event
from events.vocabulary import TzSource, Verdict
from projections.project import Change, Projection
from statesvc.append.outbox import LiveSubscription
from statesvc.database.queries import Pending, Sender
from statesvc.log.batch_row import NO_STAMP, BatchStamp
from statesvc.log.event_store import ReferencedStream
from statesvc.log.parcel_log import ParcelLog
from statesvc.queue.claim import Settlement
from statesvc.reading.read_message import Read
from statesvc.telemetry.metric import Stage

Connection = Sender
Measure = Callable[[Stage], AbstractContextManager[None]]

_CARRIER_ID: Final = attrgetter("event.carrier_id")


class WhenLocked(Enum):
    """Strategy for a shipment that another transaction has locked.

    An append never waits for a lock: it would hold up the other messages.
    """

    POSTPONE = "postpone"
    """Leaves out the messages that name it, and applies the others."""
    WAIT = "wait"
    """Raises `LockedShipmentsError` before anything is applied; `run_transaction` waits in line."""


def unmeasured(_: Stage) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(slots=True)
class AppendBatch:
    """The messages to append, and the results of each step.

    `worker` names the process in the log.
    """

    connection: Connection
    keyring: Keyring
    messages: Sequence[Read]
    worker: str
    when_locked: WhenLocked = WhenLocked.WAIT
    measure: Measure = unmeasured
    traceparents: Mapping[UUID, str] = field(default_factory=dict)
    """By message, where it is traced: its notifications continue the trace."""

    still_leased: Pending[set[UUID]] | None = None
    """Messages that the worker's lease still covers; None: they are not leased."""
    # look_up
    proposals: list[Proposal] = field(default_factory=list)
    named: dict[tuple[int, UUID], ReferencedStream] = field(default_factory=dict)
    """Shipments that each message (by its index) names, with or without an event."""
    known: dict[DedupeKey, ExistingEvent] = field(default_factory=dict)
    heads: dict[UUID, StreamHead] = field(default_factory=dict)
    """The locked ends of all streams that the messages name."""
    parcels: dict[UUID, UUID] = field(default_factory=dict)
    """The parcel of each shipment that the messages name, where others may speak of it too."""
    locked_parcels: dict[UUID, Collection[UUID] | None] = field(default_factory=dict)
    """Parcels locked by id in this transaction, with the shipments of other sources.

    None: the parcel has a stream of its own.
    """
    unlinked_parcels: set[UUID] = field(default_factory=set)
    """Locked streams without a parcel."""
    new_keys: dict[UUID, bytes] = field(default_factory=dict)
    """Sealed keys of the streams that are new, and that this transaction alone may make."""
    keys: dict[UUID, SealingKey | None] = field(default_factory=dict)
    """For each shipment that the messages name. None: erased."""
    states: Mapping[UUID, Any] = field(default_factory=dict)
    subscribed: Sequence[LiveSubscription] = ()
    """The live subscriptions that may match changes of the shipments that the messages name."""
    stamp: BatchStamp = NO_STAMP
    """The time read under the locks, the id of the batch, the epoch of the log."""
    dropped: set[int] = field(default_factory=set)
    """The indexes of messages that have no part in it: leased to another worker by now, or
    postponed.
    """
    postponed: list[Read] = field(default_factory=list)
    """Messages of locked shipments, to be given back without counting an attempt."""
    # decide
    decision: Decision = field(default_factory=Decision)
    # assemble, project
    parcel_logs: Mapping[UUID, ParcelLog] = field(default_factory=dict)
    """Log of the parcels that have several sources and that change."""
    events: list[EventRow] = field(default_factory=list)
    conflicts: list[ConflictRow] = field(default_factory=list)
    projection: Projection = field(default_factory=Projection)
    # write, settle
    notifications: int = 0
    settlements: list[Settlement] = field(default_factory=list)

    @property
    def reads(self) -> dict[int, Read]:
        """Messages that take effect, by their index."""
        return {
            index: read for index, read in enumerate(self.messages) if index not in self.dropped
        }

    @property
    def verdicts(self) -> list[Verdict]:
        """Verdicts in the order of the events of the messages that take effect."""
        return self.decision.verdicts

    @property
    def changes(self) -> list[Change]:
        return self.projection.changes

    @property
    def wrote(self) -> bool:
        """True if the log grew, or a contradiction was counted."""
        return bool(self.decision.appends or self.decision.conflicts or self.decision.aliases)

    def verdicts_by_carrier(self) -> Counter[tuple[str, Verdict]]:
        return Counter(zip(map(_CARRIER_ID, self.proposals), self.verdicts, strict=True))

    def time_sources_by_carrier(self) -> Counter[tuple[str, TzSource]]:
        """Count, for the metrics, where the offsets of the appended events come from."""
        stated = (
            p.event
            for p, verdict in zip(self.proposals, self.verdicts, strict=True)
            if verdict is Verdict.APPENDED
        )
        return Counter((event.carrier_id, event.tz_source) for event in stated)


def drop(batch: AppendBatch, indexes: Collection[int]) -> None:
    if indexes:
        batch.dropped |= set(indexes)
        # a new list: `decide` pairs verdicts with proposals by position, so none may be left as a
        # hole
        batch.proposals = [
            proposal for proposal in batch.proposals if proposal.message not in indexes
        ]
        batch.named = {
            (index, shipment): stream
            for (index, shipment), stream in batch.named.items()
            if index not in indexes
        }


def forget_erased(batch: AppendBatch) -> None:
    """Remove personal fields from the proposals for erased shipments."""
    erased = {shipment for shipment, key in batch.keys.items() if key is None}
    if erased:
        batch.proposals = [
            # its dedupe keys stay: the same scan is a duplicate after the erasure, too
            without_personal(each) if each.shipment_id in erased else each
            for each in batch.proposals
        ]


_OCCURRED_AT: Final = attrgetter("occurred_at")


def propose(reads: Sequence[Read], keyring: Keyring) -> list[Proposal]:
    """Return the events of all messages, in inbox order; those of a message oldest first.

    So a version grows with the time of its event, and a transition names the newest of the
    scans that came together.
    """
    return [
        _proposal(event, read, index, keyring)
        for index, read in enumerate(reads)
        for event in oldest_first(read.events)
    ]


def oldest_first(events: Sequence[Event]) -> list[Event]:
    """Sort by time; events of an instant keep the order of the listing where that is known."""
    newest_first = len(events) > 1 and events[0].occurred_at > events[-1].occurred_at
    return sorted(reversed(events) if newest_first else events, key=_OCCURRED_AT)


def _proposal(event: Event, read: Read, index: int, keyring: Keyring) -> Proposal:
    signer, digest = event.personal.signed_by, keyring.carrier_digest(event.carrier_id)
    shipment = event.numbered.shipment_id
    return Proposal(
        event=event,
        signer_digest=None
        if signer is None
        # with the shipment: the same signature of two parcels must not be recognized in the log
        else digest(b"signer\x1f" + shipment.bytes + signer.encode())[:DIGEST_BYTES],
        source=read.source,
        message=index,
    )
