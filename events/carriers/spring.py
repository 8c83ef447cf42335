"""Spring (PostNL): the TrackShipment answer, a shipment with its events.

`Timestamp` is an epoch and `DateTime` the wall clock next to it: together they give the offset. An
answer with an error level holds no shipment. The numbers of the delivering carriers are left out:
Spring's own is the number.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("spring_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%Y-%m-%d[ %H:%M[:%S][%f]]", "%Y-%m-%dT%H:%M:%S[%f][%z]"),
    default_zone="Europe/Amsterdam",
)

_SHIPMENT: Final = "Shipment"
_ERROR_FIELDS: Final = frozenset({"Error", "ErrorLevel", "error", "errors"})
_UNKNOWN: Final = "JSON, but no shipment of Spring"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, shipment in _shipments(kit.read_json(body), rejections):
        yield from kit.readings_of(
            _scans(shipment, where, received_at, rejections),
            kit.text(shipment.get("TrackingNumber")),
            rejections,
            service=kit.text(shipment.get("Service")),
        )


def _shipments(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    for where, member in kit.members(body, "", rejections, unknown=_UNKNOWN):
        if type(member.get(_SHIPMENT)) in (dict, list):
            yield f"{where}/{_SHIPMENT}", kit.child(member, _SHIPMENT)
        elif "Events" in member:
            yield where, member
        elif not _ERROR_FIELDS & member.keys():
            raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, _UNKNOWN)


def _scans(
    shipment: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(shipment, "Events", where, rejections):
        where_at = kit.place(
            city=event.get("City"),
            region=event.get("State"),
            postal_code=event.get("Zip"),
            country=event.get("Country"),
        )
        code = kit.text(event.get("Code"))
        raw = kit.Raw(code=code)
        yield kit.Scan(
            where=f"{where}/Events/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=_time(event, where_at, received_at),
            place=where_at,
            description=kit.text(event.get("Description")),
        )


def _time(
    event: kit.JsonObject, where: kit.EventPlace, received_at: datetime
) -> kit.PrintedTime | None:
    printed, seconds = kit.text(event.get("DateTime")), kit.text(event.get("Timestamp"))
    is_epoch = (
        seconds is not None and seconds.isascii() and seconds.isdigit() and len(seconds) <= 12
    )
    epoch = (
        kit.read_epoch(int(seconds), received_at=received_at)
        if seconds is not None and is_epoch
        else None
    )
    if epoch is None or epoch.tz_source is kit.TzSource.RECEIVED:
        return CLOCK.read(printed, where, received_at=received_at)
    if printed is None:
        return epoch
    return CLOCK.read_pair(
        printed, f"{epoch.instant:%Y-%m-%d %H:%M:%S}", where, received_at=received_at
    )


CARRIER: Final = kit.Carrier(
    carrier_id="spring",
    name="Spring",
    number_fields=("TrackingNumber",),
    normalizers={"1": normalize},
    formats=("TrackShipment JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
