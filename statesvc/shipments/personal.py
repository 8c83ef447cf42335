"""The personal parts of events, opened for readers with scope `pii` only.

A part opens with its shipment's key. An erased shipment has none left: its personal fields
read as null, for ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self
from uuid import UUID

import orjson

from events.carriers import CARRIERS
from events.clear_part import STAND_IN, known_texts
from events.crypto.keyring import Keyring, part_context
from events.crypto.sealing import SealingKey, unsalted
from events.entry.kinds import read_raw
from events.identity.ids import carrier_code, printed_code
from statesvc.shipments.models import PersonalPart


class OpenedPart(NamedTuple):
    """Fields that an event's sealed part adds. None: the clear field holds."""

    fields: PersonalPart
    postal_code: str | None = None
    facility: str | None = None
    carrier_code: str | None = None
    printed_code: str | None = None


# For readers who may not see personal fields.
HIDDEN: Final = OpenedPart({})
NOTHING_PERSONAL: Final = OpenedPart(
    {"description": None, "signed_by": None, "delivery_address": None}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opener:
    """Opens the parts of one shipment. `key` None: erased, so every part reads as null."""

    shipment_id: UUID
    key: SealingKey | None = field(repr=False)

    @classmethod
    def of_stream(cls, keyring: Keyring, shipment_id: UUID, sealed_key: bytes | None) -> Self:
        key = None if sealed_key is None else keyring.open_shipment_key(sealed_key, shipment_id)
        return cls(shipment_id=shipment_id, key=key)

    @property
    def erased(self) -> bool:
        """True if the personal data is gone for good."""
        return self.key is None

    def part(self, event_id: str, sealed_part: bytes | None) -> OpenedPart:
        """Open the part of one event. Raises SealError if the part was changed."""
        # erased and never personal read alike: an answer does not tell that there was something
        if self.key is None or sealed_part is None:
            return NOTHING_PERSONAL
        known = orjson.loads(
            unsalted(self.key.open(sealed_part, part_context(self.shipment_id, event_id)))
        )
        return read_part(known)

    def part_of_conflict(
        self, event_id: str, sealed_part: bytes | None, claimed: "Opener | None"
    ) -> OpenedPart:
        """Open the part of a conflict of this shipment.

        It is also sealed under the key of the shipment that it claimed, where that has a
        key.
        """
        if claimed is None or claimed.shipment_id == self.shipment_id:
            return self.part(event_id, sealed_part)
        # either erasure closes it: the statement is about both shipments
        if claimed.key is None or sealed_part is None:
            return NOTHING_PERSONAL
        # only from the time at which the claimed shipment had a key: it may have come later
        if claimed.key.sealed(sealed_part):
            sealed_part = claimed.key.open(sealed_part, part_context(claimed.shipment_id, event_id))
        return self.part(event_id, sealed_part)


def read_part(known: Mapping[str, Any]) -> OpenedPart:
    fields: PersonalPart = {
        "description": known.get("description"),
        "signed_by": known.get("signed_by"),
        "delivery_address": known.get("delivery_address"),
    }
    raw = known.get("raw")
    printed = None if raw is None else read_raw(raw)
    codes = (None, None) if printed is None else (carrier_code(printed), printed_code(printed))
    return OpenedPart(fields, known.get("postal_code"), known.get("facility"), *codes)


class KnownTexts:
    """Texts in place of codes that the carriers' own tables know, and so are not personal.

    Not in what subscribers are sent: that is made again, byte for byte, whatever the tables have
    learned since.
    """

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._texts: dict[str, Mapping[str, str]] = {}

    def spelled_out(self, carrier_id: str, code: str | None) -> str | None:
        # most codes are in clear: the texts of a carrier are not digested for them
        if code is None or "text-" not in code or carrier_id not in CARRIERS:
            return code
        # once per carrier: each text of its tables takes a keyed digest
        if carrier_id not in self._texts:
            self._texts[carrier_id] = known_texts(
                CARRIERS[carrier_id].texts, carrier_id, self._keyring.carrier_digest(carrier_id)
            )
        known = self._texts[carrier_id]
        # within the code: it may be joined of type, code and reason
        return STAND_IN.sub(lambda found: known.get(found[0], found[0]), code)
