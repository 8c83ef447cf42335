"""Plan of a second reading of a message: corrections of its events, and missed events. Pure.

A correction re-reads at the old time: status, reason, a signer, an estimate. A difference that it
has no field for (another time or place, a carrier's own correction) is reported and not applied.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from events.carriers.carrier import Carrier
from events.clear_part import listed_code
from events.entry.proposal import Proposal
from events.event import NOT_PERSONAL, Event, Personal
from events.identity.ids import correction_id
from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Reason, Status
from projections.project import Change
from statesvc.reading.code_mapping import Mappings
from statesvc.repair.renormalize.effective_readings import (
    Effect,
    EffectiveReading,
    event_of,
    is_known,
    raw_of,
)

# (type, code) as they stand in clear; in a report as dead letters list them.
CodeKey = tuple[str | None, str | None]

COUNTERS: Final = (
    "messages",
    "events",
    "unchanged",
    "corrected",
    "retracted",
    "added",
    "unreadable",
    "transitions",
    "updates",
    "notifications",
)


@dataclass(slots=True)
class RenormalizeReport:
    """Findings of a run.

    The counters are of events, `changes` by (status in effect, status now).
    """

    messages: int = 0
    events: int = 0
    unchanged: int = 0
    corrected: int = 0
    retracted: int = 0
    added: int = 0
    unreadable: int = 0
    """Events with neither a readable message nor a mapping nor sufficient raw fields."""
    beyond: Counter[str] = field(default_factory=Counter)
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)
    codes: set[CodeKey] = field(default_factory=set)
    codes_left: set[CodeKey] = field(default_factory=set)
    """Codes that are as unknown as before."""
    rejected: set[UUID] = field(default_factory=set)
    """Messages with members that are no events."""
    unopened: set[UUID] = field(default_factory=set)
    """Messages that cannot be read again, whatever became of their events."""
    transitions: int = 0
    updates: int = 0
    """Changes that keep the status."""
    notifications: int = 0
    """Notifications in the outbox: one for each change and matching subscription."""
    moved: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Shipments by (status before a batch, status after it)."""

    @property
    def counts(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in COUNTERS}

    @property
    def recorded(self) -> dict[str, int]:
        """The counters that an entry of the log names."""
        counts = self.counts
        return {
            name: counts[name]
            for name in ("messages", "corrected", "retracted", "added", "unreadable")
        }

    def take_changes(self, changes: Iterable[Change], *, notifications: int) -> None:
        net: dict[UUID, tuple[str, str]] = {}
        for change in changes:
            self.transitions += change.is_transition
            self.updates += not change.is_transition
            before, _ = net.get(change.shipment_id, (change.from_status, ""))
            net[change.shipment_id] = before, change.to_status
        self.notifications += notifications
        self.moved.update((before, after) for before, after in net.values() if before != after)

    def add(self, other: "RenormalizeReport") -> None:
        for name in COUNTERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.moved += other.moved
        self.beyond += other.beyond
        self.changes += other.changes
        self.codes |= other.codes
        self.codes_left |= other.codes_left
        self.rejected |= other.rejected
        self.unopened |= other.unopened


def correction(reading: EffectiveReading, wanted: Effect, signed_by: str | None = None) -> Event:
    """Build our own event that replaces the effect of a reading by `wanted`."""
    end_id = reading.end["event_id"] if reading.end is not None else None
    root_id = reading.root["event_id"]
    return replace(
        event_of(reading.root),
        event_id=correction_id(corrected=root_id, replaces=end_id or "", reading=wanted.text),
        kind=Kind.CORRECTION,
        status=Status(wanted.status) if wanted.status else None,
        reason=Reason(wanted.reason) if wanted.reason else None,
        by_category=wanted.by_category,
        estimated_delivery=wanted.estimated_delivery,
        corrects=root_id,
        anchor=end_id,
        personal=Personal(signed_by=signed_by) if signed_by is not None else NOT_PERSONAL,
    )


def plan_read(
    caused: Sequence[EffectiveReading], said: Iterable[Proposal], report: RenormalizeReport
) -> list[Event]:
    """Plan corrections of the events that a message caused. `said`: its whole reading now."""
    by_id: dict[str, Proposal] = {}
    for proposal in said:
        for _, event_id in proposal.scan_keys():
            by_id.setdefault(event_id, proposal)
    implied = {
        event_id
        for proposal in by_id.values()
        for enrichment in proposal.enrichments
        for _, event_id in proposal.enrichment_keys(enrichment)
    }
    found: list[Event] = []
    for reading in caused:
        report.events += 1
        event_id = reading.root["event_id"]
        if not is_known(reading.root):
            report.beyond["vocabulary"] += 1
        elif event_id in by_id:
            _plan_event(reading, by_id[event_id], report, found)
        elif event_id in implied:
            report.unchanged += 1
        else:
            _plan_absent(reading, report, found)
    return found


def plan_unread(
    caused: Sequence[EffectiveReading],
    carrier: Carrier,
    mappings: Mappings,
    report: RenormalizeReport,
) -> list[Event]:
    """Plan corrections of events with an unreadable message, from their raw fields alone.

    By a mapping, else as the carrier's code reads.
    """
    found: list[Event] = []
    for reading in caused:
        report.events += 1
        if not is_known(reading.root):
            report.beyond["vocabulary"] += 1
            continue
        code, was_unknown = _listed(reading), _was_unknown(reading)
        meaning = _by_raw_fields(reading, carrier, mappings)
        if meaning is None:
            report.unreadable += 1
            if was_unknown and reading.end is None:
                report.codes_left.add(code)
        elif meaning.kind is Kind.CORRECTION:
            report.beyond["kind"] += 1
        else:
            if meaning.kind is Kind.UNMAPPED or meaning.by_category:
                report.codes_left.add(code)
            elif was_unknown:
                report.codes.add(code)
            wanted = replace(
                reading.effect,
                status=meaning.status.value if meaning.status else None,
                reason=meaning.reason.value if meaning.reason else None,
                by_category=meaning.by_category,
            )
            _settle(reading, wanted, None, report, found)
    return found


def _by_raw_fields(
    reading: EffectiveReading, carrier: Carrier, mappings: Mappings
) -> Meaning | None:
    """Read an event by its raw fields, unless a normalizer of another name read it.

    Raw fields of such an event have another shape.
    """
    if reading.is_enrichment or reading.root["kind"] == Kind.CORRECTION.value:
        return None
    meaning = mappings.meaning_of(
        carrier.carrier_id, raw_of(reading.root), reading.root["raw"].get("text")
    )
    if meaning is None and reading.root["normalizer"] == carrier.carrier_id:
        return carrier.reread(raw_of(reading.root))
    return meaning


def _plan_event(
    reading: EffectiveReading, proposal: Proposal, report: RenormalizeReport, found: list[Event]
) -> None:
    event, root = proposal.event, reading.root
    if Kind.CORRECTION in {event.kind, Kind(root["kind"])}:
        same = (event.kind.value, event.status, event.corrects) == (
            root["kind"],
            root.get("status"),
            root.get("corrects"),
        )
        report.unchanged += same
        report.beyond["kind"] += not same
        return
    report.beyond["occurred_at"] += event.occurred_at.isoformat() != root["occurred_at"]
    if event.kind is Kind.UNMAPPED or event.by_category:
        report.codes_left.add(_listed(reading))
    elif _was_unknown(reading):
        report.codes.add(_listed(reading))
    effect = reading.effect
    digest = proposal.signer_digest.hex() if proposal.signer_digest else None
    wanted = Effect(
        status=event.status.value if event.status else None,
        reason=event.reason.value if event.reason else None,
        by_category=event.by_category,
        estimated_delivery=event.estimated_delivery or effect.estimated_delivery,
        signer_digest=digest or effect.signer_digest,
    )
    _settle(reading, wanted, event.personal.signed_by, report, found)


def _plan_absent(reading: EffectiveReading, report: RenormalizeReport, found: list[Event]) -> None:
    """Take back the effect, if any, of an event that the message lacks."""
    effect = reading.effect
    if reading.root["kind"] == Kind.CORRECTION.value:
        report.beyond["kind"] += 1
    elif effect.status is None and (not reading.is_enrichment or reading.end is not None):
        report.unchanged += 1
    else:
        report.retracted += 1
        report.changes[effect.status or "none", "none"] += 1
        found.append(correction(reading, Effect()))


def _settle(
    reading: EffectiveReading,
    wanted: Effect,
    signed_by: str | None,
    report: RenormalizeReport,
    found: list[Event],
) -> None:
    effect = reading.effect
    if wanted == effect:
        report.unchanged += 1
        return
    report.corrected += 1
    report.changes[effect.status or "none", wanted.status or "none"] += 1
    if _was_unknown(reading) and not wanted.by_category:
        report.codes.add(_listed(reading))
    found.append(
        correction(
            reading, wanted, signed_by if wanted.signer_digest != effect.signer_digest else None
        )
    )


def _was_unknown(reading: EffectiveReading) -> bool:
    """Return whether the code was not known, with or without a category."""
    return reading.root["kind"] == Kind.UNMAPPED.value or bool(reading.root.get("by_category"))


def _listed(reading: EffectiveReading) -> CodeKey:
    raw_type, raw_code = _code(reading)
    return listed_code(raw_type), listed_code(raw_code)


def _code(reading: EffectiveReading) -> CodeKey:
    raw = reading.root["raw"]
    return raw.get("type"), raw.get("code")
