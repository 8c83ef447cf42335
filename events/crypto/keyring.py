"""The keys that a process works with, in memory, and what each may seal. Loading them is `statesvc.database.keyring_store`."""

import hmac
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from events.crypto.sealing import MasterKeys, SealingKey

DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyring:
    """`digest_key` never changes (every keyed digest in the log depends on it); `inbox` seals bodies until their verdict."""

    master: MasterKeys = field(repr=False)
    digest_key: bytes = field(repr=False)
    inbox: SealingKey

    def digest(self, data: bytes) -> bytes:
        """Keyed digest (HMAC-SHA256, 32 bytes): compares personal or guessable values without revealing them."""
        return hmac.digest(self.digest_key, data, "sha256")

    def seal_shipment_key(self, key: SealingKey, shipment_id: UUID) -> bytes:
        """A shipment's own key under the master key."""
        return self.master.wrap(key, shipment_context(shipment_id))

    def open_shipment_key(self, sealed: bytes, shipment_id: UUID) -> SealingKey:
        """The key of a shipment as its stream row holds it."""
        return self.master.unwrap(sealed, shipment_context(shipment_id))


def shipment_context(shipment_id: UUID) -> bytes:
    """What the wrap of a shipment's key is bound to."""
    return b"shipment\x1f" + shipment_id.bytes


def body_context(message_id: UUID) -> bytes:
    """What a body and the wraps of its key are bound to."""
    return message_id.bytes


def part_context(shipment_id: UUID, event_id: str) -> bytes:
    """What the personal part of an event is bound to."""
    return b"part\x1f" + shipment_id.bytes + event_id.encode()


def attempt_context(shipment_id: UUID, webhook_id: str, number: int) -> bytes:
    """What the sealed part of an attempt is bound to."""
    return b"attempt\x1f" + shipment_id.bytes + f"{webhook_id}\x1f{number}".encode()
