"""Nationex: one shipment with its parcels, or a list of shipments.

The shipment and each parcel have a number and a history of their own, so each is a shipment of ours. A parcel's scan has an id of the
carrier and the id of an exception as code; the shipment's scans have words. Photos stay in the message.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, members, objects_at
from events.parsing.meanings import UNMAPPED, Meaning, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("nationex_codes.csv")
"""(level, code): words of the `shipment`, ids of exceptions of a `parcel`."""

EXCEPTION: Final = "ExceptionId "
"""Stands before such an id in an event's code."""

FORMATS: Final = TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S][%f]]")
CLOCK: Final = Clock(formats=FORMATS, default_zone="America/Toronto", country="CA")

_ERROR_FIELDS: Final = frozenset({"code", "error", "errors", "message", "Message"})
_UNKNOWN: Final = "JSON, but no shipment of Nationex"


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    for where, shipment in _shipments(read_json(body), rejections):
        yield from readings_of(
            _shipment_scans(shipment, where, received_at, rejections),
            text(shipment.get("ShipmentId")),
            rejections,
        )
        for index, parcel in objects_at(shipment, "Parcels", where, rejections):
            scans = _parcel_scans(parcel, f"{where}/Parcels/{index}", received_at, rejections)
            found = readings_of(scans, text(parcel.get("ParcelId")), rejections)
            yield from with_estimate(
                found, estimate(text(parcel.get("EstimatedDeliveryDate")), FORMATS)
            )


def _shipments(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    for where, member in members(body, "", rejections, unknown=_UNKNOWN):
        if "StatusHistories" in member or "Parcels" in member:
            yield where, member
        elif not (_ERROR_FIELDS & member.keys() or "ShipmentId" in member):
            raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, _UNKNOWN)


def _shipment_scans(
    shipment: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, status in objects_at(shipment, "StatusHistories", where, rejections):
        raw, where_at = (
            Raw(code=text(status.get("ShipmentStatus"))),
            _depot(status.get("LastLocation")),
        )
        yield Scan(
            where=f"{where}/StatusHistories/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(text(status.get("StatusDate")), where_at, received_at=received_at),
            place=where_at,
            description=text(status.get("ShipmentStatusEn"))
            or text(status.get("ShipmentStatusFr")),
        )


def _parcel_scans(
    parcel: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, event in objects_at(parcel, "History", where, rejections):
        exception, where_at = text(event.get("ExceptionId")), _depot(event.get("CityDepot"))
        raw = Raw(code=f"{EXCEPTION}{exception}" if exception else None)
        yield Scan(
            where=f"{where}/History/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(text(event.get("ProcessedDate")), where_at, received_at=received_at),
            place=where_at,
            description=text(event.get("DescriptionEn")) or text(event.get("DescriptionFr")),
            native_id=text(event.get("ParcelHistoryId")),
        )


def _meaning(raw: Raw) -> Meaning:
    code = raw.code or ""
    exception = code.removeprefix(EXCEPTION)
    return CODES.get(("shipment", code) if exception == code else ("parcel", exception), UNMAPPED)


def _depot(city: object) -> EventPlace:
    return place(city=city, country="CA" if text(city) else None)


CARRIER: Final = Carrier(
    carrier_id="nationex",
    name="Nationex",
    number_fields=("ShipmentId", "ParcelId"),
    normalizers={"1": normalize},
    formats=("Shipment JSON",),
    reread=_meaning,
    texts=frozenset(f"{EXCEPTION}{code}" for _, code in CODES),
    authentication=(ShipperChoice(),),
)
