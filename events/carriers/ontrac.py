"""OnTrac: answers to a tracking request.

They come from its Web Services (`OnTracTrackingResult`), as `ShipGlobalCourier`, as its public
status, and as the JSON that it took over from LaserShip. In XML an event's time is local to the
facility that scanned it, in JSON it has an offset. An unknown JSON code is read by its `Status`,
where that is definite.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers import kit

CODES: Final = kit.meanings("ontrac_codes.csv")

FORMATS: Final = kit.TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]")
CLOCK: Final = kit.Clock(formats=FORMATS, default_zone="America/Los_Angeles", country="US")

_ROOTS: Final = {
    "OnTracTrackingResult": "Shipments/Shipment",
    "ShipGlobalCourier": "Tracking/Shipment",
    "OnTracShipmentStatus": "Packages/Package",
    "OnTracUpdateResponse": "Shipments/Shipment",
}

# Categories by `Status`, and by LaserShip's event type.
CATEGORIES: Final = {
    "not yet received": kit.Meaning(kit.Kind.SCAN, kit.Status.INFO_RECEIVED),
    "in transit": kit.Meaning(kit.Kind.SCAN, kit.Status.IN_TRANSIT),
    "out for delivery": kit.Meaning(kit.Kind.SCAN, kit.Status.OUT_FOR_DELIVERY),
    # LaserShip's event types have no blanks
    "outfordelivery": kit.Meaning(kit.Kind.SCAN, kit.Status.OUT_FOR_DELIVERY),
    "attempted": kit.Meaning(kit.Kind.SCAN, kit.Status.DELIVERY_ATTEMPTED),
    "delivered": kit.Meaning(kit.Kind.SCAN, kit.Status.DELIVERED),
    "returned": kit.Meaning(kit.Kind.SCAN, kit.Status.RETURNING),
    "undeliverable": kit.Meaning(kit.Kind.SCAN, kit.Status.EXCEPTION),
    "orderreceived": kit.Meaning(kit.Kind.SCAN, kit.Status.INFO_RECEIVED),
    "arrived": kit.Meaning(kit.Kind.SCAN, kit.Status.IN_TRANSIT),
    "released": kit.Meaning(kit.Kind.SCAN, kit.Status.DELIVERED),
}

_meaning = kit.by_code(CODES)
_ERRORS: Final = frozenset(
    {"Message", "message", "Error", "error", "Errors", "ErrorMessage", "errors"}
)


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Yield the events of an answer; charges and errors have none."""
    if not kit.is_xml(body):
        for where, package in _packages(kit.read_json(body), rejections):
            number = (
                kit.text(package.get("Tracking"))
                or kit.text(package.get("TrackingNumber"))
                or kit.text(kit.child(package, "Pieces").get("TrackingNumber"))
            )
            readings = kit.readings_of(
                _json_scans(package, where, received_at, rejections), number, rejections
            )
            readings = kit.with_signer(readings, kit.signer(package.get("PodText")))
            yield from kit.with_estimate(
                readings,
                kit.estimate(kit.text(package.get("UtcExpectedDeliveryDateTime")), FORMATS),
            )
        return
    for where, shipment in _shipments(kit.read_xml(body)):
        number = kit.text_at(shipment, "Tracking", "TrackingNbr")
        found = kit.with_signer(
            kit.readings_of(
                _scans(shipment, where, received_at, rejections),
                number,
                rejections,
                service=kit.text_at(shipment, "Service"),
            ),
            kit.text_at(shipment, "POD"),
        )
        yield from kit.with_estimate(
            found, kit.estimate(kit.text_at(shipment, "Exp_Del_Date"), FORMATS)
        )


def _shipments(document: kit.Document) -> Iterator[tuple[str, _Element]]:
    for answer in kit.answers(document):
        if answer.tag not in _ROOTS:
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "XML, but no tracking of OnTrac"
            )
        path = _ROOTS[answer.tag]
        for index, shipment in kit.elements(answer, path):
            yield f"{path}[{index + 1}]", shipment


def _packages(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is list or (type(body) is dict and "Packages" in body):
        members: object = body["Packages"] if type(body) is dict else body
        base = "/Packages" if type(body) is dict else ""
        members_found = (
            (f"{base}/{index}", package)
            for index, package in (
                kit.objects_at(body, "Packages", "", rejections)
                if type(body) is dict
                else kit.objects(body, "", rejections)
            )
        )
        found = kit.recognised(members_found, {"Events"}, rejections)
        if not found and (kit.as_list(members) or type(body) is list):
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "JSON, but no package of OnTrac"
            )
        yield from found
    elif type(body) is dict and "Events" in body:
        yield "", body
    elif type(body) is not dict or not _ERRORS & body.keys():
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "JSON, but no package of OnTrac")


def _json_scans(
    package: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    """Yield the scans; LaserShip calls the code of an event its modifier."""
    for index, event in kit.objects_at(package, "Events", where, rejections):
        code = kit.text(event.get("EventCode")) or kit.text(event.get("EventModifier"))
        category = kit.text(event.get("Status")) or kit.text(event.get("EventType"))
        raw = kit.Raw(code=code or category, further=(category,) if code and category else ())
        at = kit.place(
            city=event.get("City"),
            region=event.get("State"),
            postal_code=event.get("PostalCode"),
            country=kit.text(event.get("Country")),
        )
        printed = next(
            (
                found
                # with an offset before without: the names are those of two generations of the API
                for name in ("ZonedEventDateTime", "UtcEventDateTime", "DateTime", "UTCDateTime")
                if (found := kit.text(event.get(name)))
            ),
            None,
        )
        yield kit.Scan(
            where=f"{where}/Events/{index}",
            raw=raw,
            meaning=_by_category(raw),
            time=CLOCK.read_pair(
                printed, kit.text(event.get("UTCDateTime")), at, received_at=received_at
            ),
            place=at,
            description=kit.text(event.get("EventShortDescription"))
            or kit.text(event.get("EventShortText")),
            signed_by=event.get("Signature"),
        )


def _by_category(raw: kit.Raw) -> kit.Meaning:
    """Read a code alone as the category, where an event prints no other."""
    category = raw.further[0] if raw.further else None
    code = raw.code or ""
    return kit.finest(
        (raw.code, CODES.get((code,)) or (None if category else CATEGORIES.get(code.casefold()))),
        (category, _category(category)),
    )


def _category(printed: str | None) -> kit.Meaning | None:
    return CATEGORIES.get((printed or "").casefold())


def _scans(
    shipment: _Element, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.elements_at(shipment, "Events/Event", where, rejections):
        fields = kit.texts(event)
        raw = kit.Raw(code=fields.get("Status"))
        at = kit.place(
            city=fields.get("City"),
            region=fields.get("State"),
            postal_code=fields.get("Zip"),
            # OnTrac prints no country, and delivers in the United States alone
            country="US" if "City" in fields or "State" in fields or "Zip" in fields else None,
            facility=fields.get("Facility"),
        )
        yield kit.Scan(
            where=f"{where}/Events/Event[{index}]",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(fields.get("EventTime"), at, received_at=received_at),
            place=at,
            description=fields.get("Description"),
        )


CARRIER: Final = kit.Carrier(
    carrier_id="ontrac",
    name="OnTrac",
    number_fields=("Tracking", "TrackingNbr", "TrackingNumber"),
    normalizers={"1": normalize},
    formats=("OnTracTrackingResult XML", "ShipGlobalCourier XML", "Package JSON"),
    reread=_by_category,
    texts=frozenset(category for category in CATEGORIES if " " in category),
    authentication=(kit.ShipperChoice(),),
)
