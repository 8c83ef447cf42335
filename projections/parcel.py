"""One parcel, notified once: which status changes of its shipments are news of the parcel. Pure.

A parcel that both a carrier and an aggregator push is several shipments, each with its own log.
Their status changes, in the order of the log, are notified or not by a rule that uses no other
input, so every reading of the log gives the same answer. A returning status counts as another turn
of that status: in transit, exception, in transit again. A source that has followed the parcel to
its present status moves it on; any other source is behind and moves it only forward. Neither
repeats a turn that was notified.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from events.vocabulary import RANK, Status
from projections.lifecycle import MOVES, TERMINAL

_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
_STATUSES: Final = {status.value: status for status in Status}


class ParcelSource(NamedTuple):
    """A shipment of a parcel. Shipments of the same carrier and number share a reused number."""

    shipment_id: UUID
    carrier_id: str
    number: str


class HasNumber(Protocol):
    @property
    def carrier_id(self) -> str: ...

    @property
    def number(self) -> str:
        """Number in its normalised form, for comparison."""


class SourceFilter(NamedTuple):
    """Shipments that a subscription asks for; None: all. `shipments` are `carrier_id/NUMBER`."""

    carriers: Collection[str] | None
    shipments: Collection[str] | None

    def lets_through(self, source: HasNumber) -> bool:
        """Return whether the subscription asks for shipments of this carrier and number."""
        return (self.carriers is None or source.carrier_id in self.carriers) and (
            self.shipments is None or f"{source.carrier_id}/{source.number}" in self.shipments
        )


class SourceChange(NamedTuple):
    """A status change of a source.

    Equal statuses: an update of details of the status, or an observation.
    """

    source: ParcelSource
    sequence: int
    from_status: str
    to_status: str
    occurred_at: datetime


@dataclass(slots=True)
class ParcelProgress:
    """Progress of a parcel as notified.

    `reported_by`: the shipment that gave the parcel its status; it occurred at `since`.
    """

    status: Status = Status.UNKNOWN
    reported_by: UUID | None = None
    since: datetime = _EARLIEST
    _turns_notified: Counter[Status] = field(default_factory=Counter)
    _turns: Counter[tuple[UUID, Status]] = field(default_factory=Counter)
    _shipments: dict[tuple[str, str], set[UUID]] = field(default_factory=dict)

    def notifies(self, change: SourceChange) -> bool:
        """Return whether to notify of this change, the next in the order of the log.

        Updates of the present status are accepted only from the shipment that gave it.
        """
        source = change.source
        if change.from_status == change.to_status:
            return self.reported_by in (None, source.shipment_id)
        self._begin_anew_if_used_again(source)
        before, after = _STATUSES.get(change.from_status), _STATUSES.get(change.to_status)
        if before is None or after is None:
            # a status of a later version: what is not known is not kept from anybody
            return True
        # it gave the parcel's present status, or has reached it since: its next word is news
        follows = (
            before is self.status
            and self._turns[source.shipment_id, before] >= self._turns_notified[before]
        )
        # counted also if nobody is told: the next turn of this source is then another
        self._turns[source.shipment_id, after] += 1
        turn, told = self._turns[source.shipment_id, after], self._turns_notified[after]
        if follows and turn <= told and change.occurred_at > self.since:
            # it saw fewer turns than were told, and this is another: later than all of them
            turn = told + 1
        if turn <= told or not (follows or _is_forward(self.status, after)):
            return False
        self.status, self.reported_by, self.since = after, source.shipment_id, change.occurred_at
        # the source counts as having seen all turns up to this one
        self._turns_notified[after] = self._turns[source.shipment_id, after] = turn
        return True

    def _begin_anew_if_used_again(self, source: ParcelSource) -> None:
        """Reset where a carrier uses a number again.

        Its next shipment after the end of the previous shipment is another parcel.
        """
        known = self._shipments.setdefault((source.carrier_id, source.number), set())
        if known and source.shipment_id not in known and self.status in TERMINAL:
            self.status = Status.UNKNOWN
            self._turns_notified.clear()
        known.add(source.shipment_id)


def _is_forward(status: Status, to: Status) -> bool:
    """Return whether a source that is behind may move a parcel from `status`: the life cycle allows
    it, and it is no earlier step.
    """
    return (
        to is not status
        and MOVES[status, to].to is to
        and (status in TERMINAL or RANK[to] > RANK[status])
    )


def notified_changes(changes: Iterable[SourceChange]) -> Iterator[SourceChange]:
    progress = ParcelProgress()
    return (change for change in changes if progress.notifies(change))
