"""The key of one body, wrapped and unwrapped. Pure.

Before its verdict a body's key is wrapped under the inbox key, afterwards once under a key that is
derived from those of all shipments that the message names: if any of them is erased, the body
cannot be opened, here or in the archive.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from events.crypto.keyring import Keyring, body_context, body_key_wrap
from events.crypto.sealing import SealError, SealingKey, commitment


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
