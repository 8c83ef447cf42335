"""Deciding the effect of a batch of statements on the log: append, duplicate or conflict. Pure.

A statement has an id and, where other envelopes or an older recipe give the same scan another id,
aliases: if any of them is known, it is a duplicate, and all of them become known. A repeated scan
may carry a value that it did not carry before (a signer, another ETA). That is no conflict: it
becomes an `info` event of its own. The values that a scan carried from the start are known by
digests next to its id, so that they are not appended twice.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import Final
from uuid import UUID

from events.entry.kinds import Provenance
from events.event import NOT_PERSONAL, Enrichment, Event, value
from events.identity.facts import contradict
from events.vocabulary import Kind, Verdict

# Bytes of the digest of a value that a scan carries.
CARRIED_BYTES: Final = 8

_SHIPMENT_ID: Final = attrgetter("shipment_id")
_MESSAGE: Final = attrgetter("message")

# carrier_id and event_id
DedupeKey = tuple[str, str]


@value(frozen=True, slots=True, kw_only=True)
class Proposal:
    """An event of a message, ready to be appended.

    `message` is the index of its message in the batch, in inbox order.
    """

    event: Event
    signer_digest: bytes | None
    source: Provenance
    message: int

    @property
    def enrichments(self) -> tuple[Enrichment, ...]:
        # not made with the event: a mapping may have made a scan of it, or none, since
        return self.event.enrichments if self.event.kind is Kind.SCAN else ()

    @property
    def shipment_id(self) -> UUID:
        return self.event.numbered.shipment_id

    @property
    def key(self) -> DedupeKey:
        return (self.event.carrier_id, self.event.event_id)

    def scan_keys(self) -> list[DedupeKey]:
        return [self.key, *[(self.event.carrier_id, alias) for alias in self.event.aliases]]

    def dedupe_keys(self) -> list[DedupeKey]:
        """Return the scan's keys, and those that its enrichments would have as events of their
        own.
        """
        return self.scan_keys() + [
            key for enrichment in self.enrichments for key in self.enrichment_keys(enrichment)
        ]

    def enrichment_keys(self, enrichment: Enrichment) -> list[DedupeKey]:
        """Return the keys of an enrichment: it has an id under each id of its scan."""
        return [(self.event.carrier_id, event_id) for event_id in enrichment.event_ids]


def without_personal(proposal: Proposal) -> Proposal:
    """Return the proposal as it is appended to an erased shipment: without any personal
    data, not even a digest.
    """
    return replace(
        proposal,
        event=replace(
            proposal.event,
            personal=NOT_PERSONAL,
            enrichments=tuple(
                each for each in proposal.event.enrichments if each.field != "signed_by"
            ),
        ),
        signer_digest=None,
    )


@value(frozen=True, slots=True)
class ExistingEvent:
    """The log's content under a dedupe key.

    The shipment, the facts, the carried values, and the event's id where the key is an alias.
    """

    shipment_id: UUID
    facts_digest: bytes
    attribute_digests: bytes = b""
    alias_of: str | None = None

    def carries(self, enrichment: Enrichment) -> bool:
        """Return whether the scan carried the value from the start."""
        wanted = enrichment.digest[:CARRIED_BYTES]
        return any(
            self.attribute_digests[at : at + CARRIED_BYTES] == wanted
            for at in range(0, len(self.attribute_digests), CARRIED_BYTES)
        )


@value(frozen=True, slots=True)
class Conflict:
    """A statement with the id of another statement."""

    proposal: Proposal
    holder: UUID


@dataclass(slots=True)
class Decision:
    """Decision on a batch.

    `verdicts` are in the order of the proposals; `appends` in the order of the log. `aliases`
    are the dedupe keys to take besides those of the events, with their contents.
    """

    verdicts: list[Verdict] = field(default_factory=list)
    appends: list[Proposal] = field(default_factory=list)
    aliases: list[tuple[DedupeKey, ExistingEvent]] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)

    def shipments(self) -> set[UUID]:
        return {shipment_id for shipment_id, _ in groupby(self.appends, key=_SHIPMENT_ID)}


def decide(proposals: Sequence[Proposal], known: Mapping[DedupeKey, ExistingEvent]) -> Decision:
    """Give every proposal its verdict, as if they arrived in order on a log that holds `known`."""
    # grows with the batch: two messages of one batch are decided like those of two
    seen = dict(known)
    decision = Decision()
    for proposal in proposals:
        key = proposal.key
        held = (
            key
            if key in seen
            # its own id first: only that may contradict, an alias says no more than that the scan
            # is known
            else next((alias for alias in proposal.scan_keys() if alias in seen), None)
        )
        if held is None:
            decision.verdicts.append(Verdict.APPENDED)
            _append(proposal, decision, seen)
            _take_aliases(proposal, seen[key], key, decision, seen)
        elif held == key and contradict(seen[key].facts_digest, proposal.event.facts_digest):
            decision.verdicts.append(Verdict.CONFLICT)
            decision.conflicts.append(Conflict(proposal, seen[key].shipment_id))
        else:
            decision.verdicts.append(Verdict.DUPLICATE)
            _append_enrichments(proposal, held, decision, seen)
            _take_aliases(proposal, seen[held], held, decision, seen)
    return decision


def depend_on(
    messages: Collection[int], proposals: Sequence[Proposal], named: Iterable[tuple[int, UUID]]
) -> set[int]:
    """Return these messages and the later messages that share a shipment or dedupe key with them.

    `named`: shipments, by message.
    """
    shipments: dict[int, set[UUID]] = defaultdict(set)
    for message, shipment in named:
        shipments[message].add(shipment)
    by_message = {message: list(its) for message, its in groupby(proposals, key=_MESSAGE)}
    found = set(messages)
    left_shipments, left_keys = set[UUID](), set[DedupeKey]()
    # in inbox order: a message waits for an earlier one, never for a later
    for message in sorted({*shipments, *by_message}):
        keys = {key for proposal in by_message.get(message, ()) for key in proposal.dedupe_keys()}
        if message in found or not (
            left_shipments.isdisjoint(shipments[message]) and left_keys.isdisjoint(keys)
        ):
            found.add(message)
            left_shipments |= shipments[message]
            left_keys |= keys
    return found


def key_row(proposal: Proposal) -> ExistingEvent:
    """Return the row under the dedupe key of an appended proposal."""
    attribute_digests = b"".join(
        # sorted: the row must not depend on the order of a carrier's fields
        sorted(enrichment.digest[:CARRIED_BYTES] for enrichment in proposal.enrichments)
    )
    return ExistingEvent(proposal.shipment_id, proposal.event.facts_digest, attribute_digests)


def _append(proposal: Proposal, decision: Decision, seen: dict[DedupeKey, ExistingEvent]) -> None:
    seen[proposal.key] = key_row(proposal)
    decision.appends.append(proposal)


def _append_enrichments(
    proposal: Proposal, held: DedupeKey, decision: Decision, seen: dict[DedupeKey, ExistingEvent]
) -> None:
    """Append the enrichments that the log lacks, anchored to the event that it has."""
    holder = seen[held]
    # an id that another shipment holds: its values would be written into a stranger's history
    if not proposal.enrichments or holder.shipment_id != proposal.shipment_id:
        return
    for enrichment in proposal.enrichments:
        # under any of the scan's ids: the log may have it by another envelope
        carried = any(seen[key].carries(enrichment) for key in proposal.scan_keys() if key in seen)
        if not carried and not any(key in seen for key in proposal.enrichment_keys(enrichment)):
            info = enrich(proposal, enrichment, anchor=holder.alias_of or held[1])
            _append(info, decision, seen)
            _take_aliases(info, seen[info.key], info.key, decision, seen)


def _take_aliases(
    proposal: Proposal,
    holder: ExistingEvent,
    held: DedupeKey,
    decision: Decision,
    seen: dict[DedupeKey, ExistingEvent],
) -> None:
    if not proposal.event.aliases:
        return
    for key in proposal.scan_keys():
        if key not in seen:
            # always the id of the log's own event: an alias of an alias would need two look-ups
            seen[key] = replace(holder, alias_of=holder.alias_of or held[1])
            decision.aliases.append((key, seen[key]))


def enrich(scan: Proposal, enrichment: Enrichment, *, anchor: str) -> Proposal:
    """Build the info event for a single value of `scan`.

    At the scan's time, anchored to the log's event, without moving the status.
    """
    signer = enrichment.field == "signed_by"
    (_, event_id), *aliases = scan.enrichment_keys(enrichment)
    event = replace(
        scan.event,
        event_id=event_id,
        aliases=tuple(alias for _, alias in aliases),
        # an enrichment's id is its value, so it can contradict nothing
        facts_digest=b"",
        kind=Kind.INFO,
        status=None,
        reason=None,
        by_category=False,
        corrects=None,
        anchor=anchor,
        service=None,
        estimated_delivery=None if signer else scan.event.estimated_delivery,
        personal=replace(
            scan.event.personal,
            description=None,
            delivery_address=None,
            signed_by=scan.event.personal.signed_by if signer else None,
        ),
    )
    return replace(scan, event=event, signer_digest=scan.signer_digest if signer else None)


def keys_of(appends: Iterable[Proposal]) -> list[tuple[DedupeKey, ExistingEvent]]:
    return [(proposal.key, key_row(proposal)) for proposal in appends]
