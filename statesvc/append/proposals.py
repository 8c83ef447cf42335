"""From read messages to proposals for the log: whose event, which facts, which enrichments. Pure."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Final, Literal
from uuid import UUID

from events.crypto.keyring import DIGEST_BYTES, Keyring
from events.event import Event
from events.identity import enrichment_id, facts_digest, normalize_number, shipment_id
from events.log.proposal import Enrichment, Proposal
from events.vocabulary import Kind
from statesvc.inbox.read_message import Read

_OCCURRED_AT: Final = attrgetter("occurred_at")


def propose(reads: Sequence[Read], keyring: Keyring, *, first: int = 0) -> list[Proposal]:
    """The events of all messages, in inbox order; those of one message oldest first, however its carrier lists them.

    So a version grows with the time of its event, and a transition names the newest of the scans that came together.
    `first`: the place of the first message in its batch.
    """
    return [_proposal(event, read, place, keyring) for place, read in enumerate(reads, first) for event in oldest_first(read.events)]


def oldest_first(events: Sequence[Event]) -> list[Event]:
    """By time; events of one instant in the order in which they happened, as far as the listing shows it."""
    newest_first = len(events) > 1 and events[0].occurred_at > events[-1].occurred_at
    return sorted(reversed(events) if newest_first else events, key=_OCCURRED_AT)


def _proposal(event: Event, read: Read, place: int, keyring: Keyring) -> Proposal:
    number = normalize_number(event.tracking_number)
    shipment = shipment_id(event.carrier_id, number, event.discriminator)
    signer = event.personal.signed_by
    return Proposal(
        event=event,
        shipment_id=shipment,
        number=number,
        facts_digest=facts_digest(event, keyring.digest)[:DIGEST_BYTES],
        signer_digest=None if signer is None else keyring.digest(b"signer\x1f" + shipment.bytes + signer.encode())[:DIGEST_BYTES],
        source=read.source,
        message=place,
        enrichments=_enrichments(event, shipment, keyring) if event.kind is Kind.SCAN else (),
    )


def _enrichments(event: Event, shipment: UUID, keyring: Keyring) -> tuple[Enrichment, ...]:
    carried: tuple[tuple[Literal["signed_by", "estimated_delivery"], str | None], ...] = (
        ("signed_by", event.personal.signed_by),
        ("estimated_delivery", event.estimated_delivery),
    )
    return tuple(
        Enrichment(
            event_id=enrichment_id(
                shipment_id=shipment, anchor=event.event_id, field=name, value=value, stamp=event.stamp, digest=keyring.digest
            ),
            field=name,
        )
        for name, value in carried
        if value is not None
    )
