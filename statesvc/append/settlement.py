"""The verdicts on messages that were appended, and whose keys their bodies are sealed under from now on. Pure but for fresh nonces."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from events.crypto.keyring import body_context
from events.crypto.sealing import SealingKey
from statesvc.inbox.claim import Settlement
from statesvc.inbox.read_message import Read


def settlements_of(reads: Sequence[Read], named: Iterable[tuple[int, UUID]], keys: Mapping[UUID, SealingKey | None]) -> list[Settlement]:
    """`named`: the shipments that the messages (by their place) name; one without a stream has no key."""
    shipments: list[set[UUID]] = [set() for _ in reads]
    for place, shipment_id in named:
        if shipment_id in keys:
            shipments[place].add(shipment_id)
    return [_settlement(read, sorted(its), keys) for read, its in zip(reads, shipments, strict=True)]


def _settlement(read: Read, shipments: list[UUID], keys: Mapping[UUID, SealingKey | None]) -> Settlement:
    """Wraps the body's key under the keys of all shipments that the message names: erasing any one makes the body unreadable."""
    sealed: bytes | None = read.sealed_key
    if shipments:
        sealed = read.body_key.key
        for shipment_id in shipments:
            key = keys[shipment_id]
            if key is None:
                sealed = None
                break
            sealed = key.seal(sealed, body_context(read.message_id))
    return Settlement(
        message_id=read.message_id,
        events=len(read.events),
        empty=read.empty,
        normalizer=read.normalizer,
        shipments=tuple(shipments),
        sealed_key=sealed,
    )
