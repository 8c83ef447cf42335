"""UPS: Track Alert webhooks, the answers of its tracking APIs, and Quantum View.

A webhook holds one activity, an answer a whole history, newest first. UPS has no scan ids. It sends
a credential of our choice, or a token that it fetches from us before. The Track Alert subscription
of a number lives 14 days; only 200 is an acknowledgement. A push may hold the picture of a
delivery.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit
from events.carriers.ups_codes import reread
from events.carriers.ups_json import read_json_message
from events.carriers.ups_xml import read_xml_message


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Yield every activity that a UPS message prints. Raises UnreadableMessageError only."""
    if kit.is_xml(body):
        return read_xml_message(kit.read_xml(body), received_at, rejections)
    return read_json_message(kit.read_json(body), received_at, rejections)


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read a status; where Quantum View prints no type, the name of an event decides."""
    known = reread(raw)
    return None if raw.type is None and known is kit.UNMAPPED else known


CARRIER: Final = kit.Carrier(
    carrier_id="ups",
    name="UPS",
    number_fields=(
        "trackingNumber|TrackingNumber",
        "inquiryNumber|InquiryNumber",
        "InquiryNumber.Value",
        "inquiryNumber.value",
        "ShipmentIdentificationNumber",
    ),
    normalizers={"1": normalize},
    formats=(
        "Track Alert webhook (JSON)",
        "Track API (JSON)",
        "TrackResponse (XML)",
        "TrackResponse (SOAP)",
        "Quantum View (XML, JSON)",
    ),
    reread=_reread,
    authentication=(kit.SharedHeader(header="credential"), kit.OAuthToken()),
    ack=kit.Ack(status=200),
    body_bytes_max=4 * kit.MIB,
)
