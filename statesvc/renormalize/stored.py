"""A settled message, opened once more with the keys of the shipments that it names, and read by the code of today. No I/O.

Its body's key is wrapped under those keys in their order, the last one outermost: where any of them was erased, nothing opens.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from events.carriers.carrier import Carrier
from events.keyring import Keyring, body_context
from events.sealing import SealError, SealingKey
from statesvc.inbox.claim import Burial, Message
from statesvc.rollouts.mapping import Mappings
from statesvc.worker.reading import Read, read_message


@dataclass(frozen=True, slots=True)
class Stored:
    """A message with its verdict. `sealed_key` None: erased; `sealed` None: its body is kept no longer."""

    message_id: UUID
    received_at: datetime
    shipments: list[UUID]
    sealed_key: bytes | None = field(repr=False)
    commitment: bytes | None
    sealed: bytes | None = field(repr=False)


def read_again(
    stored: Stored,
    keys: Mapping[UUID, SealingKey | None],
    *,
    carrier: Carrier,
    keyring: Keyring,
    mappings: Mappings,
) -> Read | Burial | None:
    """By the stable version and the mappings; None: it does not open any more."""
    if stored.sealed_key is None or stored.sealed is None or stored.commitment is None:
        return None
    context = body_context(stored.message_id)
    opened = stored.sealed_key
    try:
        for shipment_id in reversed(stored.shipments):
            key = keys.get(shipment_id)
            if key is None:
                return None
            opened = key.open(opened, context)
    except SealError:
        return None
    sealed_key = keyring.inbox.wrap(SealingKey(opened), context) if stored.shipments else opened
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
        sealed_key=sealed_key,
        commitment=stored.commitment,
        sealed=stored.sealed,
    )
    return read_message(message, keyring=keyring, carriers={carrier.carrier_id: carrier}, mappings=mappings)
