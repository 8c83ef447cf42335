"""Presets of the forms that a dispute asks a merchant for, by network or processor (docs/disputes.md).

Fields that are opened, and marked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePreset:
    """`wanted`: names of fields that it asks for. `upload`: where the file goes then."""

    name: str
    reason_code: str
    wanted: frozenset[str]
    upload: str


_ADDRESS: Final = frozenset(
    {"ship_to.name", "ship_to.line1", "ship_to.city", "ship_to.postal_code", "ship_to.country"}
)
PRESETS: Final[Mapping[str, EvidencePreset]] = {
    "stripe": EvidencePreset(
        name="Stripe",
        reason_code="",
        wanted=_ADDRESS | {"customer.name", "customer.email", "order.description"},
        upload="Upload the PDF with purpose dispute_evidence: its id is shipping_documentation. The JSON has the rest under stripe.",
    ),
    "visa": EvidencePreset(
        name="Visa 13.1",
        reason_code="13.1",
        wanted=_ADDRESS
        | {
            "order.number",
            "order.description",
            "order.placed_on",
            "merchant.name",
            "merchant.descriptor",
        },
        upload="Hand the PDF to your acquirer as the response to the dispute, with the date that you had agreed on.",
    ),
    "mastercard": EvidencePreset(
        name="Mastercard 4855",
        reason_code="4855",
        wanted=_ADDRESS | {"order.number", "order.description", "customer.name", "merchant.name"},
        upload="Hand the PDF, which has at most 18 pages, to your acquirer as the second presentment, with your explanation.",
    ),
}
