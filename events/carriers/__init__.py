"""The carriers that may push to us: one module each, one line here."""

from typing import Final

from events.carriers import (
    aftership,
    canonical,
    dhl_express,
    dhl_unified,
    easypost,
    fedex,
    hermes,
    ics_courier,
    landmark,
    seventeentrack,
    ups,
    usps,
)
from events.carriers.carrier import Carrier

CARRIERS: Final[dict[str, Carrier]] = {
    module.CARRIER.carrier_id: module.CARRIER
    for module in (
        aftership,
        canonical,
        dhl_express,
        dhl_unified,
        easypost,
        fedex,
        hermes,
        ics_courier,
        landmark,
        seventeentrack,
        ups,
        usps,
    )
}
