"""Proposals for the log from read messages. Pure."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from events.crypto.keyring import DIGEST_BYTES, Keyring
from events.entry.proposal import Proposal
from events.event import Event
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
    signer, digest = event.personal.signed_by, keyring.carrier_digest(event.carrier_id)
    shipment = event.numbered.shipment_id
    return Proposal(
        event=event,
        signer_digest=None
        if signer is None
        # with the shipment: the same signature of two parcels must not be recognized in the log
        else digest(b"signer\x1f" + shipment.bytes + signer.encode())[:DIGEST_BYTES],
        source=read.source,
        message=index,
    )
