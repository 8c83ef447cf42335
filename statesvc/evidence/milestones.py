"""What a dispute turns on: the pick-up, the first scan, the delivery, as the carrier's statements read after its own corrections. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from events.vocabulary import Kind, Status
from projections.correction import correct
from projections.fact import fact_from_canonical
from statesvc.evidence.bundle_entry import BundleEntry

_HANDLED: Final = frozenset(Status) - {Status.UNKNOWN, Status.INFO_RECEIVED, Status.CANCELLED}
"""What a scan can only say of a parcel that the carrier has: not that a label was printed, or was cancelled."""


@dataclass(frozen=True, slots=True)
class Milestones:
    """`readings`: the status that each scan still stands for, by event id; one that was taken back is missing."""

    readings: Mapping[str, Status]
    picked_up: BundleEntry | None
    first_scan: BundleEntry | None
    delivery: BundleEntry | None

    @classmethod
    def of(cls, shipment: Mapping[str, Any], events: Sequence[BundleEntry]) -> "Milestones":
        """From a bundle's shipment and its events."""
        facts = correct({entry.document["event_id"]: fact_from_canonical(entry.document) for entry in events}).facts
        readings = {fact.event_id: fact.status for fact in facts if fact.kind is Kind.SCAN and fact.status is not None}
        order = {fact.event_id: fact.key for fact in facts}
        scans = sorted(
            (entry for entry in events if entry.document["event_id"] in readings), key=lambda entry: order[entry.document["event_id"]]
        )
        found = [(readings[entry.document["event_id"]], entry) for entry in scans]
        return cls(
            readings=readings,
            picked_up=next((entry for status, entry in found if status is Status.PICKED_UP), None),
            first_scan=next((entry for status, entry in found if status in _HANDLED), None),
            delivery=_delivery(shipment, [entry for status, entry in found if status is Status.DELIVERED]),
        )


def _delivery(shipment: Mapping[str, Any], deliveries: Sequence[BundleEntry]) -> BundleEntry | None:
    """The scan that the shipment's delivery follows from; None where it is not, or no longer, delivered."""
    at = shipment["delivered_at"]
    if at is None and shipment["status"] != Status.DELIVERED:
        return None
    exact = [entry for entry in deliveries if at is not None and entry.at == datetime.fromisoformat(at)]
    return next(iter(exact or deliveries), None)
