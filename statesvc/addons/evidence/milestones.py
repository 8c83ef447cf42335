"""Milestones of a dispute: the pick-up, the first scan, the delivery, as the carrier's statements
read after its own corrections. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from events.vocabulary import Kind, Status
from projections.correction import correct
from projections.fact import fact_from_canonical
from projections.fold import flags_by_scan
from projections.lifecycle import Flag
from statesvc.addons.evidence.bundle_entry import BundleEntry

STEPS: Final = (
    Status.INFO_RECEIVED,
    Status.PICKED_UP,
    Status.IN_TRANSIT,
    Status.OUT_FOR_DELIVERY,
    Status.DELIVERED,
)
_HANDLED: Final = frozenset(Status) - {Status.UNKNOWN, Status.INFO_RECEIVED, Status.CANCELLED}
"""Statuses that a scan can only say of a parcel that the carrier has: not that a label was
printed, or was cancelled.
"""


@dataclass(frozen=True, slots=True)
class CorrectedDelivery:
    """A delivery that no longer counts. `reads`: its present status; None: it was taken back."""

    entry: BundleEntry
    correction: BundleEntry
    reads: Status | None


@dataclass(frozen=True, slots=True)
class Milestones:
    """`readings`: the present status of each scan by event id, without those taken back.

    `flags`: those that each scan raised. `steps`: the scan of each step of a parcel's way.
    `targets`: the number of the statement that each correction corrects, by event id.
    """

    readings: Mapping[str, Status]
    flags: Mapping[str, frozenset[Flag]]
    steps: Mapping[Status, BundleEntry]
    corrected: Sequence[CorrectedDelivery]
    targets: Mapping[str, int]
    picked_up: BundleEntry | None
    first_scan: BundleEntry | None
    delivery: BundleEntry | None

    @classmethod
    def of(cls, shipment: Mapping[str, Any], events: Sequence[BundleEntry]) -> "Milestones":
        stated = {
            entry.document["event_id"]: fact_from_canonical(entry.document) for entry in events
        }
        corrected = correct(stated)
        facts = corrected.facts
        readings = {
            fact.event_id: fact.status
            for fact in facts
            if fact.kind is Kind.SCAN and fact.status is not None
        }
        order = {fact.event_id: fact.key for fact in facts}
        scans = sorted(
            (entry for entry in events if entry.document["event_id"] in readings),
            key=lambda entry: order[entry.document["event_id"]],
        )
        found = [(readings[entry.document["event_id"]], entry) for entry in scans]
        delivery = _delivery(
            shipment, [entry for status, entry in found if status is Status.DELIVERED]
        )
        steps: dict[Status, BundleEntry] = {
            status: entry for status, entry in reversed(found) if status in STEPS
        }
        return cls(
            readings=readings,
            flags=flags_by_scan(stated.values()),
            steps=steps if delivery is None else {**steps, Status.DELIVERED: delivery},
            corrected=list(_corrected(events, readings, corrected.corrected_by)),
            targets={
                correction: stated[target].version
                for target, correction in corrected.corrected_by.items()
            },
            picked_up=next((entry for status, entry in found if status is Status.PICKED_UP), None),
            first_scan=next((entry for status, entry in found if status in _HANDLED), None),
            delivery=delivery,
        )


def _corrected(
    events: Sequence[BundleEntry], readings: Mapping[str, Status], corrected_by: Mapping[str, str]
) -> Iterator[CorrectedDelivery]:
    """Yield the deliveries that read otherwise now."""
    by_id = {entry.document["event_id"]: entry for entry in events}
    for event_id, entry in by_id.items():
        document = entry.document
        reads = readings.get(event_id)
        if (
            document["kind"] == Kind.SCAN
            and document.get("status") == Status.DELIVERED
            and reads is not Status.DELIVERED
        ):
            yield CorrectedDelivery(entry, by_id[corrected_by[event_id]], reads)


def _delivery(shipment: Mapping[str, Any], deliveries: Sequence[BundleEntry]) -> BundleEntry | None:
    """Return the scan that the shipment's delivery follows from; None where it is not,
    or no longer, delivered.
    """
    at = shipment["delivered_at"]
    if at is None and shipment["status"] != Status.DELIVERED:
        return None
    exact = [
        entry for entry in deliveries if at is not None and entry.at == datetime.fromisoformat(at)
    ]
    return next(iter(exact or deliveries), None)
