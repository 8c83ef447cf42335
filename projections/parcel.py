"""One parcel, told once: which status changes of its shipments are news of the parcel. Pure.

A parcel that a carrier and an aggregator both push is several shipments, each with its own log. Their changes of status, in the order of
the log, are told or not by one rule, which needs nothing else: so the answer is the same at every reading of the log.
A status that comes back is another turn of it: in transit, exception, in transit again. A source that has followed the parcel to where it
is moves it on, whatever it says. Any other source is behind: it moves the parcel only forward, and only to a turn that was not told.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from events.vocabulary import RANK, Status
from projections.lifecycle import MOVES, TERMINAL

_STATUSES: Final = {status.value: status for status in Status}


class ParcelSource(NamedTuple):
    """One shipment of a parcel. Shipments of the same carrier and number are one number used again."""

    shipment_id: UUID
    carrier_id: str
    number: str


class SourceChange(NamedTuple):
    """One change of status of one source."""

    source: ParcelSource
    sequence: int
    from_status: str
    to_status: str


@dataclass(slots=True)
class ParcelProgress:
    """What was told of a parcel. `teller`: the shipment whose change gave the parcel its status."""

    status: Status = Status.UNKNOWN
    teller: UUID | None = None
    _turns_told: Counter[Status] = field(default_factory=Counter)
    _turns: Counter[tuple[UUID, Status]] = field(default_factory=Counter)
    _shipments: dict[tuple[str, str], set[UUID]] = field(default_factory=dict)

    def tell(self, change: SourceChange) -> bool:
        """Whether this change, the next in the order of the log, is told."""
        source = change.source
        self._begin_anew_if_used_again(source)
        before, after = _STATUSES.get(change.from_status), _STATUSES.get(change.to_status)
        if before is None or after is None:
            # a status of a later version: what is not known is not kept from anybody
            return True
        follows = before is self.status and self._turns[source.shipment_id, before] >= self._turns_told[before]
        self._turns[source.shipment_id, after] += 1
        turn = self._turns_told[after] + 1 if follows else self._turns[source.shipment_id, after]
        if not follows and not (turn > self._turns_told[after] and _is_forward(self.status, after)):
            return False
        self.status, self.teller = after, source.shipment_id
        self._turns_told[after] = self._turns[source.shipment_id, after] = turn
        return True

    def _begin_anew_if_used_again(self, source: ParcelSource) -> None:
        """A carrier uses numbers again: what its next shipment says after the end of the one before is about another parcel."""
        known = self._shipments.setdefault((source.carrier_id, source.number), set())
        if known and source.shipment_id not in known and self.status in TERMINAL:
            self.status = Status.UNKNOWN
            self._turns_told.clear()
        known.add(source.shipment_id)


def _is_forward(status: Status, to: Status) -> bool:
    """Whether a source that is behind may move a parcel from `status`: the life cycle allows it, and it is no earlier step."""
    return to is not status and MOVES[status, to].to is to and (status in TERMINAL or RANK[to] > RANK[status])


def progress_of(changes: Iterable[SourceChange]) -> ParcelProgress:
    """What was told after these changes, in the order of the log."""
    progress = ParcelProgress()
    for change in changes:
        progress.tell(change)
    return progress


def told_of(changes: Iterable[SourceChange]) -> Iterator[SourceChange]:
    """Those of these changes that are told."""
    progress = ParcelProgress()
    return (change for change in changes if progress.tell(change))
