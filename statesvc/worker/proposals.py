"""From read messages to proposals for the log: whose event, which facts, which enrichments. Pure."""

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from events.event import Event
from events.identity import enrichment_id, facts_digest, normalize_number, shipment_id
from events.keyring import DIGEST_BYTES, Keyring
from events.log.proposal import Enrichment, Proposal
from events.vocabulary import Kind
from statesvc.worker.reading import Read


def propose(reads: Sequence[Read], keyring: Keyring) -> list[Proposal]:
    """The events of all messages, in inbox order."""
    return [_proposal(event, read, place, keyring) for place, read in enumerate(reads) for event in read.events]


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
