"""PARCEL.ONE: the answers of three interfaces, SOAP getTrackings, REST tracking and TrackLMC.

Two of them print status words or numbers; TrackLMC prints an event code and with it a delivery
status after the manner of AfterShip (`Tag_NNN`), with the tag as a category. PARCEL.ONE's own
number is the number; that of the last mile only where it is the only number.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers import kit

# (vocabulary, code): `status` words of SOAP and REST; `event` and `delivery` of TrackLMC. The event
# is finer than the delivery status.
CODES: Final = kit.meanings("parcelone_codes.csv")

FORMATS: Final = kit.TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S][%f]]")
CLOCK: Final = kit.Clock(formats=FORMATS, default_zone="Europe/Berlin")

# that of the last mile last: it changes with the carrier
_NUMBERS: Final = ("TrackingID", "P1Trackno", "CarrierTrackingID")
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message", "success"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    if kit.is_xml(body):
        return _from_xml(kit.read_xml(body), received_at, rejections)
    return _from_json(kit.read_json(body), "", received_at, rejections)


def _from_json(
    body: object, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    if type(body) is list:
        for index, member in kit.objects(body, where, rejections):
            yield from _from_json(member, f"{where}/{index}", received_at, rejections)
    elif type(body) is dict and "TrackingEvents" in body:
        yield from kit.readings_of(
            _last_mile_scans(body, where, received_at, rejections),
            kit.text(body.get("P1Trackno")),
            rejections,
        )
    elif type(body) is dict and "results" in body:
        for index, result in kit.objects_at(body, "results", where, rejections):
            pointer = f"{where}/results" + (f"/{index}" if type(body["results"]) is list else "")
            yield from _result(result, pointer, received_at, rejections)
    elif type(body) is dict and "Events" in body:
        yield from _result(body, where, received_at, rejections)
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of PARCEL.ONE"
        )


def _result(
    result: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> list[kit.Reading]:
    number = next((found for name in _NUMBERS if (found := kit.text(result.get(name)))), None)
    readings = kit.readings_of(_scans(result, where, received_at, rejections), number, rejections)
    readings = kit.with_signer(readings, kit.signer(result.get("SignedBy")))
    return kit.with_estimate(
        readings, kit.estimate(kit.text(result.get("EstimatedDelivery")), FORMATS)
    )


def _scans(
    result: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    rollup = kit.text(result.get("StatusCode"))
    events = kit.objects_at(result, "Events", where, rejections, required=rollup is None)
    # the rollup repeats the newest event
    if not kit.as_list(result.get("Events")) and ("status", rollup) in CODES:
        events, where = (
            [(0, {"StatusCode": rollup, "DateTime": result.get("DeliveryDate")})],
            f"{where}/StatusCode",
        )
    for index, event in events:
        where_at = kit.position_in_line(kit.text(event.get("Location")))
        raw = kit.Raw(code=kit.text(event.get("StatusCode")))
        yield kit.Scan(
            where=f"{where}/Events/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(kit.text(event.get("DateTime")), where_at, received_at=received_at),
            place=where_at,
            description=kit.without_markup(
                kit.text(event.get("Description")) or kit.text(event.get("Status"))
            ),
        )


def _last_mile_scans(
    body: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(body, "TrackingEvents", where, rejections):
        country, _, city = (kit.text(event.get("Location")) or "").partition(" ")
        # TrackLMC prints the country before the city (`DE Berlin`)
        is_country = len(country) == 2 and country.isupper()
        where_at = kit.position_in_line(
            city if is_country else kit.text(event.get("Location")),
            country=country if is_country else None,
        )
        code, delivery = kit.text(event.get("Statuscode")), kit.text(event.get("DeliveryStatus"))
        raw = kit.Raw(code=code, reason=delivery)
        yield kit.Scan(
            where=f"{where}/TrackingEvents/{index}",
            raw=raw,
            meaning=_last_mile_meaning(raw),
            time=CLOCK.read(
                # the local time first: it enters the id, and the other interfaces print it
                kit.text(event.get("EventdateCET")) or kit.text(event.get("EventdateUTC")),
                where_at,
                received_at=received_at,
            ),
            place=where_at,
            description=kit.without_markup(kit.text(event.get("Status"))),
        )


def _last_mile_meaning(raw: kit.Raw) -> kit.Meaning:
    delivery = raw.reason or ""
    category = delivery.partition("_")[0]
    known = CODES.get(("event", raw.code or "")) or CODES.get(("delivery", delivery))
    return kit.finest((raw.code or delivery, known), (category, CODES.get(("delivery", category))))


def _meaning(raw: kit.Raw) -> kit.Meaning:
    """Read a status word or number."""
    return CODES.get(("status", raw.code or ""), kit.UNMAPPED)


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read a status of TrackLMC, the only interface that prints one.

    An event code without a status might be that of another interface.
    """
    if raw.reason is not None:
        return _last_mile_meaning(raw)
    # the three interfaces share the raw fields, but not their codes
    return None if ("event", raw.code or "") in CODES else _meaning(raw)


def _from_xml(
    document: kit.Document, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    answer = kit.body_of(document)
    if answer is None or answer.tag == "Fault":
        return
    if answer.tag != "getTrackingsResponse":
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "XML, but no getTrackingsResponse of PARCEL.ONE"
        )
    for index, result in enumerate(answer.iter("ShipmentTrackingResult"), start=1):
        number = kit.text_at(result, "ActionResult/TrackingID", "TrackingID")
        yield from kit.readings_of(
            _xml_scans(result, f"ShipmentTrackingResult[{index}]", received_at, rejections),
            number,
            rejections,
        )


def _xml_scans(
    result: _Element, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.elements_at(result, "Trackings/TrackingResult", where, rejections):
        fields = kit.texts(event)
        raw, where_at = (
            kit.Raw(code=fields.get("TrackingStatusCode")),
            kit.position_in_line(fields.get("TrackingLocation")),
        )
        yield kit.Scan(
            where=f"{where}/TrackingResult[{index}]",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(fields.get("TrackingDateTime"), where_at, received_at=received_at),
            place=where_at,
            description=kit.without_markup(fields.get("TrackingStatus")),
        )


CARRIER: Final = kit.Carrier(
    carrier_id="parcelone",
    name="PARCEL.ONE",
    number_fields=("TrackingID|P1Trackno|CarrierTrackingID",),
    normalizers={"1": normalize},
    formats=("getTrackings SOAP", "REST tracking JSON", "TrackLMC JSON"),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
