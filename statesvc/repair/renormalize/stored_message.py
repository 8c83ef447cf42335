"""A settled message, opened once more with the keys of the shipments that it names, and read by the code of today. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring, body_context
from events.crypto.sealing import SealError, SealingKey
from statesvc.bodies.archive_file import BodyRecord
from statesvc.bodies.body_key import unwrap_body_key
from statesvc.inbox.claim import Burial, Message
from statesvc.inbox.read_message import Read, read_message
from statesvc.inbox.rollouts.code_mapping import Mappings


@dataclass(frozen=True, slots=True)
class Stored:
    """A message with its verdict. `sealed_key` None: erased."""

    message_id: UUID
    received_at: datetime
    shipments: list[UUID]
    sealed_key: bytes | None = field(repr=False)


def read_again(
    stored: Stored,
    body: BodyRecord | None,
    keys: Mapping[UUID, SealingKey | None],
    *,
    carrier: Carrier,
    keyring: Keyring,
    mappings: Mappings,
) -> Read | Burial | None:
    """By the stable version and the mappings; None: it does not open any more, or is kept no longer (`body` None)."""
    if body is None:
        return None
    try:
        key = unwrap_body_key(stored.sealed_key, stored.shipments, message_id=stored.message_id, keys=keys, keyring=keyring)
    except SealError:
        return None
    if key is None:
        return None
    message = Message(
        message_id=stored.message_id,
        carrier_id=carrier.carrier_id,
        token=stored.message_id,
        attempts=1,
        retries=0,
        received_at=stored.received_at,
        stage="raw",
        candidate=None,
        percent=0,
        shadow=False,
        sealed_key=keyring.inbox.wrap(key, body_context(stored.message_id)),
        commitment=body.commitment,
        sealed=body.sealed,
    )
    return read_message(message, keyring=keyring, carriers={carrier.carrier_id: carrier}, mappings=mappings)
