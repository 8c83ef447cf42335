"""The keys of a process, in memory, and their uses.

`statesvc.database.keyring_store` loads them.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from uuid import UUID

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from events.clear_part import Digest
from events.crypto.sealing import MasterKeys, SealingKey

DIGEST_BYTES: Final = 16
DIGEST_KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyring:
    """The keys of an installation; `inbox` seals bodies until their verdict.

    `digest_key` never changes (every keyed digest in the log depends on it). A carrier's
    statements are compared under a key of the carrier's own, HKDF over `digest_key`: a carrier
    can move to another installation that shares this key, and no digest reveals that two
    carriers made the same statement.
    """

    master: MasterKeys = field(repr=False)
    digest_key: bytes = field(repr=False)
    inbox: SealingKey
    _carrier_digests: dict[str, Digest] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def carrier_digest(self, carrier_id: str) -> Digest:
        """Return the keyed digest (HMAC-SHA256, 32 bytes) for one carrier's statements.

        It compares guessable values without revealing them.
        """
        found = self._carrier_digests.get(carrier_id)
        if found is None:
            info = b"statesvc carrier digest\x1f" + carrier_id.encode()
            # once a carrier: each scan has several digests
            key = HKDF(algorithm=SHA256(), length=DIGEST_KEY_BYTES, salt=None, info=info).derive(
                self.digest_key
            )
            found = self._carrier_digests[carrier_id] = partial(_hmac, key)
        return found

    def digest(self, data: bytes) -> bytes:
        """Return the keyed digest of data that belongs to no carrier."""
        return hmac.digest(self.digest_key, data, "sha256")

    @property
    def mapped_texts(self) -> SealingKey:
        """Seals the texts of mapped codes, under HKDF over `digest_key`: no
        rotation has to rewrite them.
        """
        return SealingKey(
            HKDF(
                algorithm=SHA256(),
                length=DIGEST_KEY_BYTES,
                salt=None,
                info=b"statesvc mapped texts",
            ).derive(self.digest_key)
        )

    @property
    def references(self) -> SealingKey:
        """Seals shippers' references to numbers, under HKDF over `digest_key`.

        No rotation has to rewrite them.
        """
        return SealingKey(
            HKDF(
                algorithm=SHA256(), length=DIGEST_KEY_BYTES, salt=None, info=b"statesvc references"
            ).derive(self.digest_key)
        )

    @property
    def token_key(self) -> bytes:
        """Signs short-lived tokens (`statesvc/http/keys/signed_token.py`).

        32 bytes, the same in every process.
        """
        return HKDF(
            algorithm=SHA256(), length=DIGEST_KEY_BYTES, salt=None, info=b"statesvc signed tokens"
        ).derive(self.digest_key)

    def seal_shipment_key(self, key: SealingKey, shipment_id: UUID) -> bytes:
        return self.master.wrap(key, shipment_context(shipment_id))

    def open_shipment_key(self, sealed: bytes, shipment_id: UUID) -> SealingKey:
        return self.master.unwrap(sealed, shipment_context(shipment_id))


def body_key_wrap(keys: Mapping[UUID, SealingKey], message_id: UUID) -> SealingKey:
    """Derive the key that wraps the key of a body that names these shipments.

    HKDF-SHA256 over their keys, so that losing any of them loses it.
    """
    # sorted: the order in which a message names its shipments is not kept
    material = b"".join(keys[shipment_id].key for shipment_id in sorted(keys))
    # extract and expand of HKDF (RFC 5869) by hand: one block, for each message
    extracted = hmac.digest(b"statesvc body key", material, "sha256")
    return SealingKey(hmac.digest(extracted, body_context(message_id) + b"\x01", "sha256"))


def shipment_context(shipment_id: UUID) -> bytes:
    """Return the context that the wrap of a shipment's key is bound to."""
    return b"shipment\x1f" + shipment_id.bytes


def body_context(message_id: UUID) -> bytes:
    """Return the context that a body and the wraps of its key are bound to."""
    return message_id.bytes


def mapped_text_context(carrier_id: str, stand_in: str) -> bytes:
    return f"mapped text\x1f{carrier_id}\x1f{stand_in}".encode()


def references_context(carrier_id: str, number: str) -> bytes:
    return f"references\x1f{carrier_id}\x1f{number}".encode()


def part_context(shipment_id: UUID, event_id: str) -> bytes:
    return b"part\x1f" + shipment_id.bytes + event_id.encode()


def attempt_context(shipment_id: UUID, webhook_id: str, number: int) -> bytes:
    """Return the context that the sealed part of an attempt is bound to, as long as its
    notification has not ended.
    """
    return b"attempt\x1f" + shipment_id.bytes + f"{webhook_id}\x1f{number}".encode()


def ended_context(shipment_id: UUID, webhook_id: str, number: int) -> bytes:
    """Return the context that the sealed part of a notification's entry is bound to; `number`: of
    the last attempt, 0 if there was none.
    """
    return b"attempts\x1f" + shipment_id.bytes + f"{webhook_id}\x1f{number}".encode()


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")
