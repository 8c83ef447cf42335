"""A message as it is stored: its body sealed under a fresh key, which is wrapped under the inbox key
until its verdict, afterwards once under a key that is derived from those of all shipments that it
names: if any of them is erased, the body cannot be opened, here or in the archive.
"""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from events.crypto.keyring import DIGEST_BYTES, Keyring, body_context, body_key_wrap
from events.crypto.sealing import SealError, SealingKey, commitment, salted
from statesvc.database.queries import Array, byteas, ints, texts, uuids

# Headers of a message without notifications of its changes. No carrier can send it: only listed
# headers are stored.
SILENT: Final = {"statesvc-notify": "false"}


@dataclass(frozen=True, slots=True)
class SealedMessage:
    """A row for `statesvc.put`. `headers` is a JSON object.

    `digest` recognises byte-identical retries of this carrier.
    """

    message_id: UUID
    carrier_id: str
    digest: bytes
    sealed: bytes = field(repr=False)
    sealed_key: bytes = field(repr=False)
    commitment: bytes
    headers: str = field(repr=False)
    body_bytes: int


def seal_message(keyring: Keyring, carrier_id: str, body: bytes, headers: str) -> SealedMessage:
    message_id = new_message_id()
    context = body_context(message_id)
    key = SealingKey.fresh()
    # without the salt the commitment, which is public, could be tried with guessed bodies
    content = salted(body)
    return SealedMessage(
        message_id,
        carrier_id,
        # keyed, for the same reason; without the salt, which no retry repeats
        keyring.carrier_digest(carrier_id)(b"body\x1f" + body)[:DIGEST_BYTES],
        key.seal(content, context),
        keyring.inbox.wrap(key, context),
        commitment(content),
        headers,
        len(body),
    )


def put_columns(messages: Sequence[SealedMessage]) -> dict[str, Array]:
    """Return the arguments of `statesvc.put`, an array for each column."""
    return {
        "message_ids": uuids([message.message_id for message in messages]),
        "carrier_ids": texts([message.carrier_id for message in messages]),
        "digests": byteas([message.digest for message in messages]),
        "sealed": byteas([message.sealed for message in messages]),
        "sealed_keys": byteas([message.sealed_key for message in messages]),
        "commitments": byteas([message.commitment for message in messages]),
        "headers": texts([message.headers for message in messages]),
        "body_bytes": ints([message.body_bytes for message in messages]),
    }


_RANDOM_BYTES = 10


def message_id(unix_ms: int, random: bytes) -> UUID:
    """Build the id of a time (milliseconds since 1970) and ten random bytes."""
    chance = int.from_bytes(random)
    value = (
        # the time first (UUID version 7): inserts stay at the right edge of the index
        (unix_ms & 0xFFFF_FFFF_FFFF) << 80
        | 0x7 << 76
        | (chance >> 64 & 0x0FFF) << 64
        | 0b10 << 62
        | chance & 0x3FFF_FFFF_FFFF_FFFF
    )
    return UUID(int=value)


def unix_ms_of(message_id: UUID) -> int:
    """Return the time in an id, in milliseconds since 1970."""
    return message_id.int >> 80


def new_message_id() -> UUID:
    return message_id(time.time_ns() // 1_000_000, secrets.token_bytes(_RANDOM_BYTES))


def unwrap_body_key(
    sealed_key: bytes | None,
    shipments: Sequence[UUID],
    *,
    message_id: UUID,
    keys: Mapping[UUID, SealingKey | None],
    keyring: Keyring,
) -> SealingKey | None:
    """Unwrap a body's key; None: erased. `keys`: those of the shipments.

    Raises `SealError` when the wrap was changed or is another message's.
    """
    if sealed_key is None:
        return None
    context = body_context(message_id)
    # no verdict yet, or one without shipments: no erasure of a shipment can reach it
    if not shipments:
        return keyring.inbox.unwrap(sealed_key, context)
    wrap = _wrap(shipments, message_id, keys)
    return None if wrap is None else wrap.unwrap(sealed_key, context)


def wrap_body_key(
    body_key: SealingKey,
    shipments: Sequence[UUID],
    *,
    message_id: UUID,
    keys: Mapping[UUID, SealingKey | None],
) -> bytes | None:
    """Wrap a body's key; None where any of the shipments was erased.

    Then no key may open the body again.
    """
    wrap = _wrap(shipments, message_id, keys)
    return None if wrap is None else wrap.wrap(body_key, body_context(message_id))


def _wrap(
    shipments: Sequence[UUID], message_id: UUID, keys: Mapping[UUID, SealingKey | None]
) -> SealingKey | None:
    present = {
        shipment_id: key for shipment_id in shipments if (key := keys.get(shipment_id)) is not None
    }
    # all or none: a body that names an erased shipment must stay closed whoever else it names
    return body_key_wrap(present, message_id) if len(present) == len(set(shipments)) else None


def open_committed(
    body_key: SealingKey, sealed: bytes, *, message_id: UUID, committed: bytes
) -> bytes:
    """Open the salted body and check it against the commitment made at ingress.

    Raises SealError.
    """
    salted_body = body_key.open(sealed, body_context(message_id))
    # the seal alone proves only that someone with the key wrote it, not that it is what came in
    if commitment(salted_body) != committed:
        raise SealError("the body is not the one that was committed to")
    return salted_body
