"""The members of Stripe's `evidence` about shipping, as far as the log and the merchant's statement fill them. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from events.carriers import CARRIERS
from statesvc.evidence.merchant_statement import ShipTo
from statesvc.evidence.milestones import Milestones

AGGREGATORS: Final = frozenset(
    {
        *("17track", "aftership", "canonical", "clickpost", "dcsa", "easypost", "easyship", "epcis", "sendcloud", "ship24"),
        *("shipengine", "shippo", "trackingmore"),
    }
)
"""Those that report of other carriers' parcels, so that their name is not the carrier's."""
DOCUMENT_FILE: Final = "evidence.pdf"


def carrier_name(carrier_id: str) -> str:
    """As people know it."""
    return CARRIERS[carrier_id].name if carrier_id in CARRIERS else carrier_id


def stripe_fields(shipment: Mapping[str, Any], milestones: Milestones, ship_to: ShipTo | None) -> dict[str, str | None]:
    """None: nothing was stated that would fill it. `shipping_documentation` names the file: Stripe wants the id of its upload there."""
    carrier_id, shipped = shipment["carrier_id"], milestones.picked_up
    return {
        "shipping_carrier": None if carrier_id in AGGREGATORS else carrier_name(carrier_id),
        "shipping_date": None if shipped is None else f"{shipped.at:%Y-%m-%d}",
        "shipping_tracking_number": shipment["tracking_number"],
        "shipping_address": (ship_to.address or None) if ship_to else None,
        "shipping_documentation": DOCUMENT_FILE,
    }
