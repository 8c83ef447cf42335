"""OnTrac: answers to a tracking request.

They come from its Web Services (`OnTracTrackingResult`), as `ShipGlobalCourier`, as its public status, and as the JSON that it took over
from LaserShip. In XML an event's time is local to the facility that scanned it, in JSON it has an offset. A code of JSON that is not known
is read by its `Status`, where that says enough.
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
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, as_list, elements_at, objects, objects_at, recognised
from events.parsing.meanings import Meaning, by_code, finest, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import signer, text
from events.parsing.times import Clock
from events.parsing.xml import Document, answers, elements, is_xml, read_xml, text_at, texts
from events.vocabulary import Kind, Status

CODES: Final = meanings("ontrac_codes.csv")

FORMATS: Final = TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]")
CLOCK: Final = Clock(formats=FORMATS, default_zone="America/Los_Angeles", country="US")

_ROOTS: Final = {
    "OnTracTrackingResult": "Shipments/Shipment",
    "ShipGlobalCourier": "Tracking/Shipment",
    "OnTracShipmentStatus": "Packages/Package",
    "OnTracUpdateResponse": "Shipments/Shipment",
}

CATEGORIES: Final = {
    "not yet received": Meaning(Kind.SCAN, Status.INFO_RECEIVED),
    "in transit": Meaning(Kind.SCAN, Status.IN_TRANSIT),
    "out for delivery": Meaning(Kind.SCAN, Status.OUT_FOR_DELIVERY),
    "outfordelivery": Meaning(Kind.SCAN, Status.OUT_FOR_DELIVERY),
    "attempted": Meaning(Kind.SCAN, Status.DELIVERY_ATTEMPTED),
    "delivered": Meaning(Kind.SCAN, Status.DELIVERED),
    "returned": Meaning(Kind.SCAN, Status.RETURNING),
    "undeliverable": Meaning(Kind.SCAN, Status.EXCEPTION),
}
"""Categories by what `Status` says, and by the event type of LaserShip."""

_meaning = by_code(CODES)
_ERRORS: Final = frozenset(
    {"Message", "message", "Error", "error", "Errors", "ErrorMessage", "errors"}
)


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer; charges and errors say nothing."""
    if not is_xml(body):
        for where, package in _packages(read_json(body), rejections):
            number = text(package.get("Tracking")) or text(package.get("TrackingNumber"))
            readings = readings_of(
                _json_scans(package, where, received_at, rejections), number, rejections
            )
            readings = with_signer(readings, signer(package.get("PodText")))
            yield from with_estimate(
                readings, estimate(text(package.get("UtcExpectedDeliveryDateTime")), FORMATS)
            )
        return
    for where, shipment in _shipments(read_xml(body)):
        number = text_at(shipment, "Tracking", "TrackingNbr")
        found = with_signer(
            readings_of(
                _scans(shipment, where, received_at, rejections),
                number,
                rejections,
                service=text_at(shipment, "Service"),
            ),
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


def _packages(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    """Yield the package that an answer is, or those that it lists."""
    if body in ({}, []):
        return
    if type(body) is list or (type(body) is dict and "Packages" in body):
        members: object = body["Packages"] if type(body) is dict else body
        base = "/Packages" if type(body) is dict else ""
        members_found = (
            (f"{base}/{index}", package) for index, package in objects(members, base, rejections)
        )
        found = recognised(members_found, {"Events"}, rejections)
        if not found and (as_list(members) or type(body) is list):
            raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no package of OnTrac")
        yield from found
    elif type(body) is dict and "Events" in body:
        yield "", body
    elif type(body) is not dict or not _ERRORS & body.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no package of OnTrac")


def _json_scans(
    package: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    """Yield the scans; LaserShip calls the code of an event its modifier."""
    for index, event in objects_at(package, "Events", where, rejections):
        code = text(event.get("EventCode")) or text(event.get("EventModifier"))
        category = text(event.get("Status")) or text(event.get("EventType"))
        raw = Raw(code=code or category, further=(category,) if code and category else ())
        at = place(
            city=event.get("City"),
            region=event.get("State"),
            postal_code=event.get("PostalCode"),
            country=text(event.get("Country")),
        )
        printed = (
            text(event.get(name))
            for name in ("ZonedEventDateTime", "UtcEventDateTime", "UTCDateTime", "DateTime")
        )
        yield Scan(
            where=f"{where}/Events/{index}",
            raw=raw,
            meaning=_by_category(raw),
            time=CLOCK.read(
                next((found for found in printed if found), None), at, received_at=received_at
            ),
            place=at,
            description=text(event.get("EventShortDescription"))
            or text(event.get("EventShortText")),
            signed_by=event.get("Signature"),
        )


def _by_category(raw: Raw) -> Meaning:
    """Read a code alone as the category, where an event prints no other."""
    category = raw.further[0] if raw.further else None
    code = raw.code or ""
    return finest(
        (raw.code, CODES.get((code,)) or (None if category else CATEGORIES.get(code.casefold()))),
        (category, _category(category)),
    )


def _category(printed: str | None) -> Meaning | None:
    return CATEGORIES.get((printed or "").casefold())


def _scans(
    shipment: _Element, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, event in elements_at(shipment, "Events/Event", where, rejections):
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
            where=f"{where}/Events/Event[{index}]",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(fields.get("EventTime"), at, received_at=received_at),
            place=at,
            description=fields.get("Description"),
        )


CARRIER: Final = Carrier(
    carrier_id="ontrac",
    name="OnTrac",
    number_fields=("Tracking", "TrackingNbr", "TrackingNumber"),
    normalizers={"1": normalize},
    formats=("OnTracTrackingResult XML", "ShipGlobalCourier XML", "Package JSON"),
    reread=_by_category,
    texts=frozenset(category for category in CATEGORIES if " " in category),
    authentication=(ShipperChoice(),),
)
