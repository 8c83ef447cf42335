"""Projection of appended events: new states, and the changes that subscribers are notified of.

Pure.

The fold runs after each message in inbox order, so a first snapshot of ten scans is one change, not
ten. An event that sorts behind everything known is applied to the stored state; any other makes the
shipment fold its whole history again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import Final
from uuid import UUID

from events.entry.assemble import EventRow
from events.event import value
from events.vocabulary import Status
from projections.fact import Fact, decode_fact, fact_from_log
from projections.fold import advance, fold
from projections.state import INITIAL, ShipmentState

_SHIPMENT_ID: Final = attrgetter("proposal.shipment_id")
_MESSAGE: Final = attrgetter("proposal.message")


def notified_change(before: ShipmentState, after: ShipmentState) -> tuple[Status, Status] | None:
    """Return the statuses before and after a message if subscribers are notified of it.

    At most one change results. An update has equal statuses: the status stays, but details that
    subscribers received are no longer true.
    """
    corrected = before.corrections != after.corrections and _reported(before) != _reported(after)
    is_told = (
        before.status is not after.status
        or before.delivered_event_id != after.delivered_event_id
        or corrected
    )
    return (before.status, after.status) if is_told else None


def _reported(state: ShipmentState) -> tuple[object, ...]:
    signer = state.signature.digest if state.signature else None
    return (state.reason, state.status_since, state.delivered_at, state.attempts, signer)


@value(frozen=True, slots=True, kw_only=True)
class Change:
    """A change to notify subscribers of: a transition, or an update.

    An update keeps the status: `from_status` equals `to_status`.
    """

    row: EventRow
    """The event with the highest version that its message appended: it names the change."""
    from_status: str
    to_status: str

    @property
    def shipment_id(self) -> UUID:
        return self.row.proposal.shipment_id

    @property
    def is_transition(self) -> bool:
        return self.from_status != self.to_status


@value(frozen=True, slots=True, kw_only=True)
class Projected:
    """State of a shipment after the batch."""

    last: EventRow
    state: ShipmentState


@dataclass(slots=True)
class Projection:
    """The outcome of a batch.

    `missing`: shipments that must be folded from their history, which was not given.
    """

    shipments: dict[UUID, Projected] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    missing: set[UUID] = field(default_factory=set)
    raised: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Flags that shipments got, by carrier: illegal, backward or surprising moves."""


def facts_from_log(canonicals: Iterable[tuple[UUID, bytes]]) -> dict[UUID, list[Fact]]:
    """Return the fold's input of each shipment, from the canonical bytes of its events."""
    facts: dict[UUID, list[Fact]] = defaultdict(list)
    for shipment_id, canonical in canonicals:
        facts[shipment_id].append(fact_from_log(decode_fact(canonical)))
    return facts


def project(
    rows: Sequence[EventRow],
    states: Mapping[UUID, ShipmentState],
    histories: Mapping[UUID, Sequence[Fact]],
) -> Projection:
    """Project the appended `rows` (in the order of the log).

    `states`: of the shipments that exist; `histories`: their facts before this batch, needed only
    for those that a first call names as `missing`.
    """
    grown: dict[UUID, list[EventRow]] = defaultdict(list)
    for shipment_id, appended in groupby(rows, key=_SHIPMENT_ID):
        grown[shipment_id] += appended
    result = Projection()
    for shipment_id, its in grown.items():
        before = states.get(shipment_id)
        # a new shipment has an empty history, which need not be read
        history = () if before is None else histories.get(shipment_id)
        if not _project_shipment(
            result, shipment_id, INITIAL if before is None else before, history, its
        ):
            result.missing.add(shipment_id)
    # by message, then shipment: entries of a batch have one order, whatever a dict's is
    result.changes.sort(key=lambda change: (change.row.proposal.message, change.shipment_id.int))
    return result


def _project_shipment(
    result: Projection,
    shipment_id: UUID,
    before: ShipmentState,
    history: Sequence[Fact] | None,
    rows: Sequence[EventRow],
) -> bool:
    """Project a shipment's rows, grouped by message.

    Return False where the history is needed and absent.
    """
    first = before
    so_far: list[Fact] = []
    changes = []
    last = None
    # by message: scans that came together are one change for subscribers
    for _, group in groupby(rows, key=_MESSAGE):
        appended = list(group)
        # what was written: of an erased shipment that is less than what was proposed
        new = [fact_from_log(decode_fact(row.leaf.canonical)) for row in appended]
        so_far += new
        after = advance(before, new)
        if after is None:
            if history is None:
                return False
            # observations are no facts: a fold cannot give them again
            after = replace(fold([*history, *so_far]), observed=before.observed)
        last = appended[-1]
        if (told := notified_change(before, after)) is not None:
            changes.append(Change(row=last, from_status=told[0].value, to_status=told[1].value))
        before = after
    if last is not None:
        result.changes += changes
        result.shipments[shipment_id] = Projected(last=last, state=before)
        for flag in before.flags - first.flags:
            result.raised[last.proposal.event.carrier_id, flag] += 1
    return True
