"""FedEx: whole histories, newest first, pushed (JSON) or polled (JSON, XML).

Pushes come out of order.

FedEx has no scan ids and recycles numbers: the unique id next to a number is the shipment's
discriminator. Only 200 or 202 is an acknowledgement. A push may hold the picture and the
signature of a delivery.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit
from events.carriers.fedex_json import read_json_message
from events.carriers.fedex_scan import meaning
from events.carriers.fedex_xml import read_xml_message


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Yield every scan that a FedEx message prints. Raises UnreadableMessageError only."""
    if kit.is_xml(body):
        return read_xml_message(kit.read_xml(body), received_at, rejections)
    return read_json_message(kit.read_json(body), received_at, rejections)


CARRIER: Final = kit.Carrier(
    carrier_id="fedex",
    name="FedEx",
    number_fields=("trackingNumber", "TrackingNumber"),
    normalizers={"1": normalize},
    formats=(
        "Track API and Advanced Integrated Visibility push (JSON)",
        "TrackReply (XML)",
        "TrackReply (SOAP)",
    ),
    reread=meaning,
    authentication=(
        kit.Hmac(header="fdx-signature", encoding="base64"),
        kit.Hmac(header="fdx-signature"),
    ),
    body_bytes_max=4 * kit.MIB,
)
