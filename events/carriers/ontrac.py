"""OnTrac: answers to a tracking request, of its Web Services (`OnTracTrackingResult`) and as `ShipGlobalCourier`, and its public status.

An event's time is local to the facility that scanned it.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import estimate, with_estimate, with_signer
from events.parsing.formats import TimeFormats
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.times import Clock
from events.parsing.xml import Document, answers, elements, read_xml, text_at, texts

CODES: Final = meanings("ontrac_codes.csv")

FORMATS: Final = TimeFormats("%Y-%m-%dT%H:%M:%S[%f]")
CLOCK: Final = Clock(formats=FORMATS, default_zone="America/Los_Angeles", country="US")

_ROOTS: Final = {
    "OnTracTrackingResult": "Shipments/Shipment",
    "ShipGlobalCourier": "Tracking/Shipment",
    "OnTracShipmentStatus": "Packages/Package",
    "OnTracUpdateResponse": "Shipments/Shipment",
}

_meaning = by_code(CODES)


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Events of one answer; charges and errors say nothing."""
    for where, shipment in _shipments(read_xml(body)):
        number = text_at(shipment, "Tracking", "TrackingNbr")
        found = with_signer(
            readings_of(_scans(shipment, where, received_at), number, rejections, service=text_at(shipment, "Service")),
            text_at(shipment, "POD"),
        )
        yield from with_estimate(found, estimate(text_at(shipment, "Exp_Del_Date"), FORMATS))


def _shipments(document: Document) -> Iterator[tuple[str, _Element]]:
    for answer in answers(document):
        if answer.tag not in _ROOTS:
            raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "XML, but no tracking of OnTrac")
        path = _ROOTS[answer.tag]
        for index, shipment in elements(answer, path):
            yield f"{path}[{index + 1}]", shipment


def _scans(shipment: _Element, where: str, received_at: datetime) -> Iterator[Scan]:
    for index, event in elements(shipment, "Events/Event"):
        fields = texts(event)
        raw = Raw(code=fields.get("Status"))
        at = place(
            city=fields.get("City"),
            region=fields.get("State"),
            postal_code=fields.get("Zip"),
            country="US" if "City" in fields or "State" in fields or "Zip" in fields else None,
            facility=fields.get("Facility"),
        )
        yield Scan(
            where=f"{where}/Events/Event[{index + 1}]",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(fields.get("EventTime"), at, received_at=received_at),
            place=at,
            description=fields.get("Description"),
        )


CARRIER: Final = Carrier(
    carrier_id="ontrac",
    name="OnTrac",
    number_fields=("Tracking", "TrackingNbr"),
    normalizers={"1": normalize},
    formats=("OnTracTrackingResult XML", "ShipGlobalCourier XML"),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
