"""An entry of a bundle, read: its document, and the personal part where it is shown; the milestones
of a dispute among them, and the signer of the delivery that counts. Pure.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson

from events.entry.kinds import read_raw
from events.event import Raw
from events.identity.ids import printed_code
from events.spelling import spelled
from events.vocabulary import Kind, Status
from projections.correction import correct
from projections.fact import fact_from_canonical
from projections.fold import flags_by_scan
from projections.lifecycle import Flag
from statesvc.addons.evidence.bundle import ERASED, WITHHELD
from statesvc.shipments.plain_names import spaced

ERASED_TEXT: Final = "erased at the person's request"
WITHHELD_TEXT: Final = "not shown to this reader"
_HIDDEN: Final[Mapping[str, str]] = {ERASED: ERASED_TEXT, WITHHELD: WITHHELD_TEXT}
_SALT_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class BundleEntry:
    """`part`: the personal values, empty where they are not shown, for the reason `part_state`."""

    index: int
    kind: str
    document: Mapping[str, Any]
    part: Mapping[str, Any]
    part_state: str

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> "BundleEntry":
        part = (
            {}
            if entry["part"] is None
            else orjson.loads(base64.b64decode(entry["part"])[_SALT_BYTES:])
        )
        return cls(
            entry["index"],
            entry["kind"],
            orjson.loads(entry["canonical"]),
            part,
            entry["part_state"],
        )

    @property
    def number(self) -> int:
        """Number of the statement, the same in every form of the evidence, the console and the
        API: the event's version.
        """
        version: int = self.document["version"]
        return version

    @property
    def at(self) -> datetime:
        return datetime.fromisoformat(self.document["occurred_at"])

    @property
    def hidden(self) -> str | None:
        """Reason why personal values are not shown; None: they are, or there are none."""
        return _HIDDEN.get(self.part_state)

    @property
    def location(self) -> Mapping[str, str]:
        """Place of the event: the parts that are stated, as exact as this reader may see them."""
        # the part last: it has the whole postcode, of which the clear part has the beginning
        stated = {**(self.document.get("location") or {}), **self.part}
        return {
            part: stated[part]
            for part in ("facility", "city", "region", "postal_code", "country")
            if stated.get(part)
        }

    @property
    def place(self) -> str:
        return one_line(self.location.values())

    @property
    def code(self) -> str:
        """The carrier's code, as printed where that is shown."""
        # the clear code holds stand-ins for texts
        if "raw" in self.part:
            return printed_code(self.raw) or ""
        return self.document.get("carrier_code") or ""

    @property
    def raw(self) -> Raw:
        """The carrier's codes as printed, where they are shown."""
        return read_raw(self.part.get("raw") or self.document.get("raw") or {})


def one_line(parts: Iterable[str]) -> str:
    """Join the parts of a place, each once: some carriers print region and country
    in the city's name, too.
    """
    said: list[str] = []
    for part in parts:
        if part not in said:
            said += [piece.strip() for piece in part.split(",")]
    return ", ".join(said)


def first_personal(entries: Iterable[BundleEntry], name: str) -> str | None:
    """Return the first value of this name that is shown."""
    return next((value for entry in entries if (value := entry.part.get(name))), None)


STEPS: Final = (
    Status.INFO_RECEIVED,
    Status.PICKED_UP,
    Status.IN_TRANSIT,
    Status.OUT_FOR_DELIVERY,
    Status.DELIVERED,
)
# Statuses that a scan can only say of a parcel that the carrier has: not that a label was printed,
# or was cancelled.
_HANDLED: Final = frozenset(Status) - {Status.UNKNOWN, Status.INFO_RECEIVED, Status.CANCELLED}


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


def carriers_words(entry: BundleEntry) -> str:
    """Return the carrier's text without its layout; empty: none, or hidden from this reader."""
    return " ".join((entry.part.get("description") or "").split())


def words_of(entry: BundleEntry) -> str:
    """Return the status of a statement, and the carrier's words."""
    document = entry.document
    status = spaced(document["status"]) if document.get("status") else spaced(document["kind"])
    return ": ".join(filter(None, (status, carriers_words(entry))))


def signer_of(
    shipment: Mapping[str, Any], events: Sequence[BundleEntry], milestones: Milestones
) -> str | None:
    signer: str | None = shipment.get("signed_by") or first_personal(
        _standing(events, milestones), "signed_by"
    )
    return signer


def other_signers(
    shipment: Mapping[str, Any], events: Sequence[BundleEntry], milestones: Milestones
) -> Iterator[BundleEntry]:
    """Yield the first statement that names each further signer."""
    named = {spelled(signer_of(shipment, events, milestones) or "")}
    for entry in _standing(events, milestones):
        signer = spelled(entry.part.get("signed_by") or "")
        if signer and signer not in named:
            named.add(signer)
            yield entry


def why_unsigned(events: Sequence[BundleEntry], milestones: Milestones) -> str:
    if hidden := next((entry.hidden for entry in events if entry.hidden), None):
        return hidden
    if milestones.corrected and (named := first_personal(events, "signed_by")):
        return (
            f"nobody, for a delivery that still stands; {named} was named for the one that does not"
        )
    is_in_words = milestones.delivery is not None and carriers_words(milestones.delivery)
    return (
        "not in a field of its own; see the carrier’s words"
        if is_in_words
        else "not stated by the carrier"
    )


def _standing(events: Sequence[BundleEntry], milestones: Milestones) -> list[BundleEntry]:
    """Return the statements without deliveries that no longer count, and their enrichments."""
    withdrawn = {corrected.entry.document["event_id"] for corrected in milestones.corrected}
    return [
        entry
        for entry in events
        if withdrawn.isdisjoint((entry.document["event_id"], entry.document.get("anchor")))
    ]
