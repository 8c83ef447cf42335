"""The personal parts of events, opened for readers with scope `pii` only.

A part opens with its shipment's key. An erased shipment has none left: its personal fields read as null, for ever.
"""

from dataclasses import dataclass, field
from typing import Final, Self
from uuid import UUID

import orjson

from events.crypto.keyring import Keyring, part_context
from events.crypto.sealing import SealingKey, unsalted
from statesvc.shipments.models import PersonalPart

HIDDEN: Final[PersonalPart] = {}
"""For readers who may not see personal fields."""
NOTHING_PERSONAL: Final[PersonalPart] = {"description": None, "signed_by": None, "delivery_address": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Opener:
    """Opens the parts of one shipment. `key` None: erased, so every part reads as null."""

    shipment_id: UUID
    key: SealingKey | None = field(repr=False)

    @classmethod
    def of_stream(cls, keyring: Keyring, shipment_id: UUID, sealed_key: bytes | None) -> Self:
        """The opener for a shipment whose stream row holds `sealed_key`."""
        key = None if sealed_key is None else keyring.open_shipment_key(sealed_key, shipment_id)
        return cls(shipment_id=shipment_id, key=key)

    @property
    def erased(self) -> bool:
        """Whether the personal data is gone for good."""
        return self.key is None

    def part(self, event_id: str, sealed_part: bytes | None) -> PersonalPart:
        """`description`, `signed_by` and `delivery_address` of one event. `SealError` when the part was changed."""
        if self.key is None or sealed_part is None:
            return NOTHING_PERSONAL
        known = orjson.loads(unsalted(self.key.open(sealed_part, part_context(self.shipment_id, event_id))))
        return {
            "description": known.get("description"),
            "signed_by": known.get("signed_by"),
            "delivery_address": known.get("delivery_address"),
        }

    def part_of_conflict(self, event_id: str, sealed_part: bytes | None, claimed: "Opener | None") -> PersonalPart:
        """The same of a conflict that this shipment holds; sealed under the key of the shipment that it claimed too, where that has one."""
        if claimed is None or claimed.shipment_id == self.shipment_id:
            return self.part(event_id, sealed_part)
        if claimed.key is None or sealed_part is None:
            return NOTHING_PERSONAL
        if claimed.key.sealed(sealed_part):
            sealed_part = claimed.key.open(sealed_part, part_context(claimed.shipment_id, event_id))
        return self.part(event_id, sealed_part)
