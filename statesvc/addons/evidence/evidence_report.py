"""A bundle in words for people: the events, their times, and how to check it. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from events.merkle.checkpoint import read_checkpoint
from events.vocabulary import Kind
from statesvc.addons.evidence import wording as words
from statesvc.addons.evidence.bundle import ERASED, UNAVAILABLE, WITHHELD, Bundle
from statesvc.addons.evidence.bundle_entry import (
    ERASED_TEXT,
    WITHHELD_TEXT,
    BundleEntry,
    Milestones,
    carriers_words,
)
from statesvc.addons.evidence.notified import NotifiedLine, notified_lines, receivers_of
from statesvc.addons.evidence.proof_of_delivery import DeliveryProof, read_delivery_proofs
from statesvc.addons.evidence.summary import EvidenceSummary, summary_of
from statesvc.shipments.plain_names import carrier_name, spaced
from statesvc.shipments.printed_times import local_time, short_time, utc, zone_source

_NOT_SHOWN: Final = {
    ERASED: ERASED_TEXT,
    WITHHELD: WITHHELD_TEXT,
    UNAVAILABLE: "not stored: its commitment is in the entry of the attempt",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementLine:
    """A statement of the carrier, or a conclusion of ours.

    `occurred`: by its own clock and zone; `recorded`: by ours. `number`: 0 for a conclusion.
    `is_key`: it moved the state, or is the first or the last. `zone`: source of an assumed
    zone. `there`: the computed local time.
    """

    index: int
    number: int = 0
    occurred: str
    recorded: str
    what: str
    where: str
    code: str
    note: str = ""
    is_key: bool = True
    zone: str = ""
    there: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentBodyLine:
    """Body that a subscriber was sent, word for word, or why it is not shown.

    `attempts`: the numbers of those that carried it.
    """

    webhook_id: str
    receiver: str
    attempts: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionLine:
    """An operator's action, or an observation of the service."""

    index: int
    at: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceReport:
    """Everything that the HTML page and the PDF show, as text.

    `reference`: the parcel in a few words, for the foot of each page.
    """

    title: str
    reference: str
    made_at: str
    summary: EvidenceSummary
    delivery_proofs: Sequence[DeliveryProof] = field(default_factory=tuple)
    statements: Sequence[StatementLine] = field(default_factory=tuple)
    conclusions: Sequence[StatementLine] = field(default_factory=tuple)
    contradictions: Sequence[StatementLine] = field(default_factory=tuple)
    notified: Sequence[NotifiedLine] = field(default_factory=tuple)
    bodies: Sequence[SentBodyLine] = field(default_factory=tuple)
    observations: Sequence[ActionLine] = field(default_factory=tuple)
    actions: Sequence[ActionLine] = field(default_factory=tuple)
    proof: Sequence[tuple[str, str]] = field(default_factory=tuple)
    checkpoint: str = ""
    keys: Sequence[str] = field(default_factory=tuple)


def report_of(bundle: Bundle) -> EvidenceReport:
    """Build the report on a bundle of this release or an earlier one."""
    shipment = bundle["shipment"]
    entries = [BundleEntry.of(entry) for entry in bundle["entries"]]
    events = sorted(
        (entry for entry in entries if entry.kind == "event"),
        key=lambda entry: (entry.at, entry.index),
    )
    milestones = Milestones.of(shipment, events)
    proofs = read_delivery_proofs(bundle)
    places: dict[str, list[int]] = defaultdict(list)
    for entry in events:
        places[entry.document["message_id"]].append(entry.index)
    return EvidenceReport(
        title="Proof of delivery"
        if milestones.delivery is not None and shipment["status"] == "delivered"
        else "Shipment record",
        reference=f"{carrier_name(shipment['carrier_id'])} {shipment['tracking_number']}",
        made_at=bundle["made_at"],
        summary=summary_of(bundle, entries, milestones, proofs),
        delivery_proofs=[proof for proof in proofs if proof.image_format is not None],
        statements=list(_statements(events, entries, milestones)),
        conclusions=[_conclusion(entry, places) for entry in entries if entry.kind == "transition"],
        contradictions=[_statement(entry, None) for entry in entries if entry.kind == "conflict"],
        notified=notified_lines(bundle, entries),
        bodies=[_body(bundle, each) for each in bundle["sent"]],
        observations=[_observation(entry) for entry in entries if entry.kind == "observation"],
        actions=[_action(entry) for entry in entries if entry.kind == "action"],
        proof=list(_proof(bundle, entries)),
        checkpoint=bundle["log"]["checkpoint"],
        keys=bundle["log"]["keys"],
    )


def page_one_of(bundle: Bundle) -> dict[str, Any]:
    """Return the first page as sentences: the bundle's member `page_one`."""
    report = report_of(bundle)
    summary = report.summary
    return {
        "title": report.title,
        "verdict": summary.verdict,
        "notices": list(summary.notices),
        "remarks": list(summary.remarks),
    }


def _proof(bundle: Bundle, entries: Sequence[BundleEntry]) -> Iterator[tuple[str, str]]:
    """Yield the head of all proofs."""
    head = read_checkpoint(bundle["log"]["checkpoint"])
    yield "Log", head.origin
    yield "Entries in the log", f"{head.size:,}"
    yield "Sealed", utc(bundle["log"]["sealed_at"])
    yield "Document made", utc(bundle["made_at"])
    if stamp := bundle["log"].get("stamp"):
        size = read_checkpoint(stamp["checkpoint"]).size
        later = sum(entry.index >= size for entry in entries)
        covered = (
            "all entries of this document"
            if not later
            else f"all entries of this document except the last {later}"
        )
        yield "Time stamp", f"{utc(stamp['stamped_at'])} (RFC 3161), of {covered}"
        yield "Stamped by", stamp["authority"]


def _statements(
    events: Sequence[BundleEntry], entries: Sequence[BundleEntry], milestones: Milestones
) -> Iterator[StatementLine]:
    """Yield the statements in the order in which they happened."""
    causes = {entry.document["event_id"] for entry in entries if entry.kind == "transition"}
    marked = {
        id(entry)
        for entry in (
            *events[:1],
            *events[-1:],
            milestones.picked_up,
            milestones.first_scan,
            milestones.delivery,
        )
    }
    for entry in events:
        yield _statement(
            entry, milestones, is_key=id(entry) in marked or entry.document["event_id"] in causes
        )


def _statement(
    entry: BundleEntry, milestones: Milestones | None, *, is_key: bool = True
) -> StatementLine:
    """Build the line of a statement.

    `milestones` None: of a contradiction, which is no statement of its own.
    """
    document = entry.document
    readings = {} if milestones is None else milestones.readings
    flags = (
        sorted(milestones.flags.get(document["event_id"], ()))
        if milestones is not None and entry.kind == "event"
        else []
    )
    notes = [f"{words.FLAGS.get(flag, spaced(flag))}: see the first page" for flag in flags]
    if document["kind"] == Kind.CORRECTION:
        notes.append(_corrects(document, milestones))
    if document["kind"] == Kind.UNMAPPED:
        notes.append("an unknown code: the status stayed as it was")
    status = document.get("status")
    if (
        entry.kind == "event"
        and document["kind"] == Kind.SCAN
        and status
        and readings.get(document["event_id"]) != status
    ):
        read = readings.get(document["event_id"])
        notes.append(f"corrected later: {spaced(read)}" if read else "taken back later")
    if signer := entry.part.get("signed_by"):
        notes.append(f"signed by {signer}")
    description = carriers_words(entry) or entry.hidden or ""
    reading = (
        spaced(status)
        if status
        else {Kind.INFO: "information"}.get(document["kind"], document["kind"])
    )
    return StatementLine(
        index=entry.index,
        number=0 if milestones is None else entry.number,
        occurred=short_time(document),
        zone=zone_source(document),
        there=local_time(document, entry.location),
        recorded=utc(document["recorded_at"]),
        what=f"{reading}: {description}" if description else reading,
        where=entry.place,
        code=entry.code,
        note="; ".join(notes),
        is_key=is_key,
    )


def _corrects(correction: Mapping[str, Any], milestones: Milestones | None) -> str:
    target = None if milestones is None else milestones.targets.get(correction["event_id"])
    verb = "corrects" if correction.get("status") else "takes back"
    return (
        f"{verb} an earlier statement"
        if milestones is None or target is None
        else f"{verb} statement {target}"
    )


def _conclusion(entry: BundleEntry, places: Mapping[str, Sequence[int]]) -> StatementLine:
    document = entry.document
    return StatementLine(
        index=entry.index,
        occurred="",
        recorded=utc(document["recorded_at"]),
        what=f"{spaced(document['from'])} → {spaced(document['to'])}",
        where="",
        code=_cause(document, places.get(document["message_id"], ())),
    )


def _cause(transition: Mapping[str, Any], places: Sequence[int]) -> str:
    """Return the positions of the entries that moved the state together."""
    if len(places) > 1:
        return (
            f"the {len(places)} entries {min(places)} to {max(places)}, which came in one message"
        )
    return f"entry {places[0]}" if places else str(transition["event_id"])


def _body(bundle: Bundle, message: Mapping[str, Any]) -> SentBodyLine:
    return SentBodyLine(
        webhook_id=message["webhook_id"],
        receiver=receivers_of(bundle)[message["subscription_id"]],
        attempts=", ".join(map(str, message.get("attempts", ()))) or "all",
        text=message["body"] or _NOT_SHOWN[message.get("body_state", UNAVAILABLE)],
    )


def _observation(entry: BundleEntry) -> ActionLine:
    document = entry.document
    since = f", since {utc(document['since'])}" if document.get("since") else ""
    return ActionLine(
        index=entry.index,
        at=utc(document["recorded_at"]),
        what=f"{spaced(document['kind'])}{since}",
    )


def _action(entry: BundleEntry) -> ActionLine:
    document = entry.document
    why = document.get("details", {}).get("why")
    return ActionLine(
        index=entry.index,
        at=utc(document["recorded_at"]),
        what=f"{spaced(document['verb'])} by {document['actor']}{f': {why}' if why else ''}",
    )
