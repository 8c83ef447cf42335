"""Nationex: a shipment with its parcels, or a list of shipments.

The shipment and each parcel have a number and a history of their own, so each is a shipment of
ours. A parcel's scan has an id of the carrier and the id of an exception as code; the shipment's
scans have words. Photos stay in the message.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# (level, code): words of the `shipment`, ids of exceptions of a `parcel`.
CODES: Final = kit.meanings("nationex_codes.csv")

# Prefix of such an id in an event's code.
# an id of digits alone would not tell that it is an exception's
EXCEPTION: Final = "ExceptionId "

FORMATS: Final = kit.TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S][%f]]")
CLOCK: Final = kit.Clock(formats=FORMATS, default_zone="America/Toronto", country="CA")

_ERROR_FIELDS: Final = frozenset({"code", "error", "errors", "message", "Message"})
_UNKNOWN: Final = "JSON, but no shipment of Nationex"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, shipment in _shipments(kit.read_json(body), rejections):
        yield from kit.readings_of(
            _shipment_scans(shipment, where, received_at, rejections),
            kit.text(shipment.get("ShipmentId")),
            rejections,
        )
        for index, parcel in kit.objects_at(shipment, "Parcels", where, rejections):
            scans = _parcel_scans(parcel, f"{where}/Parcels/{index}", received_at, rejections)
            found = kit.readings_of(scans, kit.text(parcel.get("ParcelId")), rejections)
            yield from kit.with_estimate(
                found, kit.estimate(kit.text(parcel.get("EstimatedDeliveryDate")), FORMATS)
            )


def _shipments(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    for where, member in kit.members(body, "", rejections, unknown=_UNKNOWN):
        if "StatusHistories" in member or "Parcels" in member:
            yield where, member
        elif not (_ERROR_FIELDS & member.keys() or "ShipmentId" in member):
            raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, _UNKNOWN)


def _shipment_scans(
    shipment: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, status in kit.objects_at(shipment, "StatusHistories", where, rejections):
        raw, where_at = (
            kit.Raw(code=kit.text(status.get("ShipmentStatus"))),
            _depot(status.get("LastLocation")),
        )
        yield kit.Scan(
            where=f"{where}/StatusHistories/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(kit.text(status.get("StatusDate")), where_at, received_at=received_at),
            place=where_at,
            description=kit.text(status.get("ShipmentStatusEn"))
            or kit.text(status.get("ShipmentStatusFr")),
        )


def _parcel_scans(
    parcel: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(parcel, "History", where, rejections):
        exception, where_at = kit.text(event.get("ExceptionId")), _depot(event.get("CityDepot"))
        raw = kit.Raw(code=f"{EXCEPTION}{exception}" if exception else None)
        yield kit.Scan(
            where=f"{where}/History/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(
                kit.text(event.get("ProcessedDate")), where_at, received_at=received_at
            ),
            place=where_at,
            description=kit.text(event.get("DescriptionEn"))
            or kit.text(event.get("DescriptionFr")),
            # only a parcel's scans have one: the shipment's have words and a time
            native_id=kit.text(event.get("ParcelHistoryId")),
        )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    code = raw.code or ""
    exception = code.removeprefix(EXCEPTION)
    return CODES.get(
        ("shipment", code) if exception == code else ("parcel", exception), kit.UNMAPPED
    )


def _depot(city: object) -> kit.EventPlace:
    return kit.place(city=city, country="CA" if kit.text(city) else None)


CARRIER: Final = kit.Carrier(
    carrier_id="nationex",
    name="Nationex",
    number_fields=("ShipmentId", "ParcelId"),
    normalizers={"1": normalize},
    formats=("Shipment JSON",),
    reread=_meaning,
    texts=frozenset(f"{EXCEPTION}{code}" for _, code in CODES),
    authentication=(kit.ShipperChoice(),),
)
