"""Names of carriers, statuses and flags as people write them. Pure."""

from typing import Final

from events.carriers import CARRIERS

# Meanings of a shipment's flags.
REMARKS: Final = {
    "contradicted": "one statement contradicts the others; it did not change the state",
    "reopened": "it was cancelled or lost, and then scanned again",
    "redelivered": "it was delivered twice: time and signature are those of the later delivery",
    "backward": (
        "one step comes later, by the carrier’s clock, than steps that follow it on a parcel’s way"
    ),
    "delivered_while_returning": (
        "it was delivered on its way back; the carrier did not say to whom"
    ),
    "stalled": "no scan came for longer than is usual in its state",
    "not_picked_up": "a label was made, and no scan shows that the carrier had the parcel",
    "overdue": "the day that the carrier promised first is over",
    "delivery_missed": "it was out for delivery, and not delivered that day",
    "pickup_expiring": "it waits to be picked up, and will soon be sent back",
}


def spaced(name: str) -> str:
    return name.replace("_", " ").replace(".", " ")


def carrier_name(carrier_id: str) -> str:
    return CARRIERS[carrier_id].name if carrier_id in CARRIERS else carrier_id
