"""PARCEL.ONE: the answers of three interfaces, SOAP getTrackings, REST tracking and TrackLMC.

Two of them print status words or numbers; TrackLMC prints an event code and with it a delivery status after the manner of AfterShip
(`Tag_NNN`), whose tag is a category. PARCEL.ONE's own number is the number; that of the last mile only where it is the only one.
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
from events.parsing.lines import position_in_line
from events.parsing.lists import JsonObject, as_list, elements_at, objects, objects_at
from events.parsing.meanings import UNMAPPED, Meaning, finest, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import signer, text, without_markup
from events.parsing.times import Clock
from events.parsing.xml import Document, body_of, is_xml, read_xml, text_at, texts

CODES: Final = meanings("parcelone_codes.csv")
"""(vocabulary, code): `status` words of SOAP and REST; `event` and `delivery` of TrackLMC, where the event says more."""

FORMATS: Final = TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S][%f]]")
CLOCK: Final = Clock(formats=FORMATS, default_zone="Europe/Berlin")

_NUMBERS: Final = ("TrackingID", "P1Trackno", "CarrierTrackingID")
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message", "success"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    if is_xml(body):
        return _from_xml(read_xml(body), received_at, rejections)
    return _from_json(read_json(body), "", received_at, rejections)


def _from_json(
    body: object, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Reading]:
    if body in ({}, []):
        return
    if type(body) is list:
        for index, member in objects(body, where, rejections):
            yield from _from_json(member, f"{where}/{index}", received_at, rejections)
    elif type(body) is dict and "TrackingEvents" in body:
        yield from readings_of(
            _last_mile_scans(body, where, received_at, rejections),
            text(body.get("P1Trackno")),
            rejections,
        )
    elif type(body) is dict and "results" in body:
        for index, result in objects_at(body, "results", where, rejections):
            pointer = f"{where}/results" + (f"/{index}" if type(body["results"]) is list else "")
            yield from _result(result, pointer, received_at, rejections)
    elif type(body) is dict and "Events" in body:
        yield from _result(body, where, received_at, rejections)
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no tracking of PARCEL.ONE")


def _result(
    result: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> list[Reading]:
    number = next((found for name in _NUMBERS if (found := text(result.get(name)))), None)
    readings = readings_of(_scans(result, where, received_at, rejections), number, rejections)
    readings = with_signer(readings, signer(result.get("SignedBy")))
    return with_estimate(readings, estimate(text(result.get("EstimatedDelivery")), FORMATS))


def _scans(
    result: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    rollup = text(result.get("StatusCode"))
    events = objects_at(result, "Events", where, rejections, required=rollup is None)
    if not as_list(result.get("Events")) and ("status", rollup) in CODES:
        events, where = (
            [(0, {"StatusCode": rollup, "DateTime": result.get("DeliveryDate")})],
            f"{where}/StatusCode",
        )
    for index, event in events:
        where_at = position_in_line(text(event.get("Location")))
        raw = Raw(code=text(event.get("StatusCode")))
        yield Scan(
            where=f"{where}/Events/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(text(event.get("DateTime")), where_at, received_at=received_at),
            place=where_at,
            description=without_markup(text(event.get("Description")) or text(event.get("Status"))),
        )


def _last_mile_scans(
    body: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, event in objects_at(body, "TrackingEvents", where, rejections):
        country, _, city = (text(event.get("Location")) or "").partition(" ")
        is_country = len(country) == 2 and country.isupper()
        where_at = position_in_line(
            city if is_country else text(event.get("Location")),
            country=country if is_country else None,
        )
        code, delivery = text(event.get("Statuscode")), text(event.get("DeliveryStatus"))
        raw = Raw(code=code, reason=delivery)
        yield Scan(
            where=f"{where}/TrackingEvents/{index}",
            raw=raw,
            meaning=_last_mile_meaning(raw),
            time=CLOCK.read(
                text(event.get("EventdateCET")) or text(event.get("EventdateUTC")),
                where_at,
                received_at=received_at,
            ),
            place=where_at,
            description=without_markup(text(event.get("Status"))),
        )


def _last_mile_meaning(raw: Raw) -> Meaning:
    delivery = raw.reason or ""
    category = delivery.partition("_")[0]
    known = CODES.get(("event", raw.code or "")) or CODES.get(("delivery", delivery))
    return finest((raw.code or delivery, known), (category, CODES.get(("delivery", category))))


def _meaning(raw: Raw) -> Meaning:
    """Read a status word or number."""
    return CODES.get(("status", raw.code or ""), UNMAPPED)


def _reread(raw: Raw) -> Meaning | None:
    """Read a status of TrackLMC, the only interface that prints one; an event code without one might be that of another interface."""
    if raw.reason is not None:
        return _last_mile_meaning(raw)
    return None if ("event", raw.code or "") in CODES else _meaning(raw)


def _from_xml(
    document: Document, received_at: datetime, rejections: Rejections
) -> Iterator[Reading]:
    answer = body_of(document)
    if answer is None or answer.tag == "Fault":
        return
    if answer.tag != "getTrackingsResponse":
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "XML, but no getTrackingsResponse of PARCEL.ONE"
        )
    for index, result in enumerate(answer.iter("ShipmentTrackingResult"), start=1):
        number = text_at(result, "ActionResult/TrackingID", "TrackingID")
        yield from readings_of(
            _xml_scans(result, f"ShipmentTrackingResult[{index}]", received_at, rejections),
            number,
            rejections,
        )


def _xml_scans(
    result: _Element, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, event in elements_at(result, "Trackings/TrackingResult", where, rejections):
        fields = texts(event)
        raw, where_at = (
            Raw(code=fields.get("TrackingStatusCode")),
            position_in_line(fields.get("TrackingLocation")),
        )
        yield Scan(
            where=f"{where}/TrackingResult[{index}]",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(fields.get("TrackingDateTime"), where_at, received_at=received_at),
            place=where_at,
            description=without_markup(fields.get("TrackingStatus")),
        )


CARRIER: Final = Carrier(
    carrier_id="parcelone",
    name="PARCEL.ONE",
    number_fields=("TrackingID|P1Trackno|CarrierTrackingID",),
    normalizers={"1": normalize},
    formats=("getTrackings SOAP", "REST tracking JSON", "TrackLMC JSON"),
    reread=_reread,
    authentication=(ShipperChoice(),),
)
