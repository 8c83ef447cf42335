"""Fields of a dispute's forms, as far as the log and the merchant's statement fill them. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from statesvc.addons.evidence.bundle_entry import BundleEntry, Milestones
from statesvc.addons.evidence.merchant_statement import MerchantStatement, read_statement
from statesvc.shipments.plain_names import carrier_name

# Those that report of other carriers' parcels, so that their name is not the carrier's.
AGGREGATORS: Final = frozenset(
    {
        "17track",
        "aftership",
        "canonical",
        "clickpost",
        "dcsa",
        "easypost",
        "easyship",
        "epcis",
        "sendcloud",
        "ship24",
        "shipengine",
        "shippo",
        "trackingmore",
    }
)
DOCUMENT_FILE: Final = "evidence.pdf"


def dispute_fields(bundle: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bundle's members `stripe` and `place_agreement`."""
    events = [BundleEntry.of(entry) for entry in bundle["entries"] if entry["kind"] == "event"]
    milestones = Milestones.of(bundle["shipment"], events)
    return {
        # empty since 0.2
        "place_agreement": [],
        "stripe": stripe_fields(bundle["shipment"], milestones, read_statement(bundle)),
    }


def stripe_fields(
    shipment: Mapping[str, Any], milestones: Milestones, statement: MerchantStatement | None
) -> dict[str, str | None]:
    """Return the known members of Stripe's `evidence`; None: unknown.

    `shipping_documentation` names the file: Stripe wants the id of its upload there.
    """
    carrier_id, shipped = shipment["carrier_id"], milestones.picked_up
    ship_to, customer, order = (
        (None, None, None)
        if statement is None
        else (statement.ship_to, statement.customer, statement.order)
    )
    return {
        "customer_name": customer.name if customer else None,
        "customer_email_address": customer.email if customer else None,
        "customer_purchase_ip": customer.ip_address if customer else None,
        "product_description": order.description if order else None,
        "shipping_carrier": None if carrier_id in AGGREGATORS else carrier_name(carrier_id),
        "shipping_date": None if shipped is None else f"{shipped.at:%Y-%m-%d}",
        "shipping_tracking_number": shipment["tracking_number"],
        "shipping_address": (ship_to.address or None) if ship_to else None,
        "shipping_documentation": DOCUMENT_FILE,
    }
