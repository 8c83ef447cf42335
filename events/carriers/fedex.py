"""FedEx: whole histories, newest first, pushed (JSON) or polled (JSON, XML). Pushes come out of order.

FedEx has no scan ids and recycles numbers: the unique id next to a number is the shipment's discriminator. Only 200 or 202 is an
acknowledgement. A push may hold the picture and the signature of a delivery.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import MIB, Carrier, Hmac
from events.carriers.fedex_json import read_json_message
from events.carriers.fedex_scan import meaning
from events.carriers.fedex_xml import read_xml_message
from events.event import Reading
from events.parsing.json import read_json
from events.parsing.rejections import Rejections, normalizer
from events.parsing.xml import is_xml, read_xml


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield every scan that a FedEx message prints. Raises UnreadableMessageError only."""
    if is_xml(body):
        return read_xml_message(read_xml(body), received_at, rejections)
    return read_json_message(read_json(body), received_at, rejections)


CARRIER: Final = Carrier(
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
    authentication=(Hmac(header="fdx-signature", encoding="base64"), Hmac(header="fdx-signature")),
    body_bytes_max=4 * MIB,
)
