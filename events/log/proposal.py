"""Deciding what a batch of statements does to the log: appended, duplicate or conflict. Pure.

A scan that is pushed again may carry something that it did not carry before (a signer, another ETA). That is no conflict: it
becomes an `info` event of its own. So that the value which a scan carried from the start is not appended twice, the id that its
enrichment would have is reserved together with the scan.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal
from uuid import UUID

from events.entry import Provenance
from events.event import NOT_PERSONAL, Event, value
from events.vocabulary import Kind, Verdict

Key = tuple[str, str]
"""(carrier_id, event_id)"""


@value(frozen=True, slots=True, kw_only=True)
class Enrichment:
    """One value that a scan carries besides its facts, with the event id that it would have on its own."""

    event_id: str
    field: Literal["signed_by", "estimated_delivery"]


@value(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One event of one message, ready to be appended. `message` is the place of its message in the batch, in inbox order."""

    event: Event
    shipment_id: UUID
    number: str
    facts_digest: bytes
    signer_digest: bytes | None
    source: Provenance
    message: int
    enrichments: tuple[Enrichment, ...] = ()

    @property
    def key(self) -> Key:
        """The dedupe key."""
        return (self.event.carrier_id, self.event.event_id)

    def dedupe_keys(self) -> Iterable[Key]:
        """The dedupe key, and those of its enrichments."""
        yield self.key
        for enrichment in self.enrichments:
            yield (self.event.carrier_id, enrichment.event_id)


def without_personal(proposal: Proposal) -> Proposal:
    """As it is appended to an erased shipment: nothing of a person goes with it, no digest either."""
    return replace(
        proposal,
        event=replace(proposal.event, personal=NOT_PERSONAL),
        signer_digest=None,
        enrichments=tuple(enrichment for enrichment in proposal.enrichments if enrichment.field != "signed_by"),
    )


@value(frozen=True, slots=True)
class Known:
    """What the log holds under a dedupe key."""

    shipment_id: UUID
    facts_digest: bytes


@value(frozen=True, slots=True)
class Conflict:
    """A statement whose id another statement holds."""

    proposal: Proposal
    holder: UUID


@dataclass(slots=True)
class Decision:
    """What becomes of a batch. `verdicts` stand in the order of the proposals; `appends` in the order of the log."""

    verdicts: list[Verdict] = field(default_factory=list)
    appends: list[Proposal] = field(default_factory=list)
    reserved: list[tuple[Key, Proposal]] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)

    def shipments(self) -> set[UUID]:
        """The shipments whose streams grow."""
        return {proposal.shipment_id for proposal in self.appends}


def decide(proposals: Sequence[Proposal], known: Mapping[Key, Known]) -> Decision:
    """Gives every proposal its verdict, as if they arrived one after the other on a log that holds `known`."""
    seen = dict(known)
    decision = Decision()
    for proposal in proposals:
        holder = seen.get(proposal.key)
        if holder is None:
            decision.verdicts.append(Verdict.APPENDED)
            _append(proposal, decision, seen)
            for enrichment in proposal.enrichments:
                key = (proposal.event.carrier_id, enrichment.event_id)
                if key not in seen:
                    seen[key] = Known(proposal.shipment_id, proposal.facts_digest)
                    decision.reserved.append((key, proposal))
        elif holder.facts_digest == proposal.facts_digest:
            decision.verdicts.append(Verdict.DUPLICATE)
            for enrichment in proposal.enrichments:
                if (proposal.event.carrier_id, enrichment.event_id) not in seen:
                    _append(enrich(proposal, enrichment), decision, seen)
        else:
            decision.verdicts.append(Verdict.CONFLICT)
            decision.conflicts.append(Conflict(proposal, holder.shipment_id))
    return decision


def _append(proposal: Proposal, decision: Decision, seen: dict[Key, Known]) -> None:
    seen[proposal.key] = Known(proposal.shipment_id, proposal.facts_digest)
    decision.appends.append(proposal)


def enrich(scan: Proposal, enrichment: Enrichment) -> Proposal:
    """The info event that states one value of `scan` on its own: at the scan's time, anchored to it, moving nothing."""
    signer = enrichment.field == "signed_by"
    event = replace(
        scan.event,
        event_id=enrichment.event_id,
        kind=Kind.INFO,
        status=None,
        reason=None,
        by_category=False,
        corrects=None,
        anchor=scan.event.event_id,
        estimated_delivery=None if signer else scan.event.estimated_delivery,
        personal=replace(
            scan.event.personal, description=None, delivery_address=None, signed_by=scan.event.personal.signed_by if signer else None
        ),
    )
    return replace(scan, event=event, signer_digest=scan.signer_digest if signer else None, enrichments=())
