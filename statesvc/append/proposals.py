"""Proposals for the log from read messages: the shipment, the facts, the enrichments. Pure."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Final, Literal
from uuid import UUID

from events.clear_part import Digest
from events.crypto.keyring import DIGEST_BYTES, Keyring
from events.entry.proposal import Enrichment, Proposal
from events.event import Event
from events.identity.ids import facts_digest, numbered, value_digest
from events.vocabulary import Kind
from statesvc.reading.read_message import Read

_OCCURRED_AT: Final = attrgetter("occurred_at")


def propose(reads: Sequence[Read], keyring: Keyring) -> list[Proposal]:
    """Return the events of all messages, in inbox order; those of a message oldest first.

    So a version grows with the time of its event, and a transition names the newest of the
    scans that came together.
    """
    return [
        _proposal(event, read, index, keyring)
        for index, read in enumerate(reads)
        for event in oldest_first(read.events)
    ]


def oldest_first(events: Sequence[Event]) -> list[Event]:
    """Sort by time; events of an instant keep the order of the listing where that is known."""
    newest_first = len(events) > 1 and events[0].occurred_at > events[-1].occurred_at
    return sorted(reversed(events) if newest_first else events, key=_OCCURRED_AT)


def _proposal(event: Event, read: Read, index: int, keyring: Keyring) -> Proposal:
    _, number, shipment = event.numbered
    signer, digest = event.personal.signed_by, keyring.carrier_digest(event.carrier_id)
    return Proposal(
        event=event,
        shipment_id=shipment,
        number=number,
        facts_digest=facts_digest(event, digest),
        signer_digest=None
        if signer is None
        else digest(b"signer\x1f" + shipment.bytes + signer.encode())[:DIGEST_BYTES],
        source=read.source,
        message=index,
        enrichments=_enrichments(event, shipment, digest) if event.kind is Kind.SCAN else (),
        parcel_id=_parcel(event),
    )


def _parcel(event: Event) -> UUID | None:
    """Return the parcel's id: that of its carrier's shipment without discriminator.

    An aggregator names that carrier.
    """
    carrier_id = event.parcel_carrier_id or event.carrier_id
    if carrier_id == event.carrier_id and not event.discriminator:
        return None
    return numbered(carrier_id, event.tracking_number).shipment_id


def _enrichments(event: Event, shipment: UUID, digest: Digest) -> tuple[Enrichment, ...]:
    if event.personal.signed_by is None and event.estimated_delivery is None:
        return ()
    carried: tuple[tuple[Literal["signed_by", "estimated_delivery"], str | None], ...] = (
        ("signed_by", event.personal.signed_by),
        ("estimated_delivery", event.estimated_delivery),
    )
    return tuple(
        Enrichment(
            field=name,
            digest=value_digest(
                shipment_id=shipment, field=name, value=value, stamp=event.stamp, digest=digest
            ),
        )
        for name, value in carried
        if value is not None
    )
