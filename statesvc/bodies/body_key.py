"""The key of one body, unwrapped. Pure.

Before its verdict a body's key is wrapped under the inbox key, afterwards under the keys of all shipments that the message names, in
their order, the last one outermost: where any of them was erased, nothing opens, here or in the archive.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from events.crypto.keyring import Keyring, body_context
from events.crypto.sealing import SealError, SealingKey, commitment


def unwrap_body_key(
    sealed_key: bytes | None, shipments: Sequence[UUID], *, message_id: UUID, keys: Mapping[UUID, SealingKey | None], keyring: Keyring
) -> SealingKey | None:
    """None: erased. `keys` holds those of the shipments. Raises `SealError` when the wrap was changed or is another message's."""
    if sealed_key is None:
        return None
    context = body_context(message_id)
    if not shipments:
        return keyring.inbox.unwrap(sealed_key, context)
    opened = sealed_key
    for shipment_id in reversed(shipments):
        key = keys.get(shipment_id)
        if key is None:
            return None
        opened = key.open(opened, context)
    return SealingKey(opened)


def open_committed(body_key: SealingKey, sealed: bytes, *, message_id: UUID, committed: bytes) -> bytes:
    """The salted body, proven to be the one that was committed to at ingress; else `SealError`."""
    salted_body = body_key.open(sealed, body_context(message_id))
    if commitment(salted_body) != committed:
        raise SealError("the body is not the one that was committed to")
    return salted_body
