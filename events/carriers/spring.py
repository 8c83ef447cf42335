"""Spring (PostNL): the TrackShipment answer, one shipment with its events.

`Timestamp` is an epoch and `DateTime` the wall clock next to it: together they give the offset. An answer with an error level holds no
shipment. The numbers of the delivering carriers are left out: Spring's own is the number.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, PrintedTime, Raw, Reading
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child, members, objects_at
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock, read_epoch
from events.vocabulary import TzSource

CODES: Final = meanings("spring_codes.csv")
_meaning: Final = by_code(CODES)

CLOCK: Final = Clock(
    formats=TimeFormats("%Y-%m-%d[ %H:%M[:%S][%f]]", "%Y-%m-%dT%H:%M:%S[%f][%z]"),
    default_zone="Europe/Amsterdam",
)

_SHIPMENT: Final = "Shipment"
_ERROR_FIELDS: Final = frozenset({"Error", "ErrorLevel", "error", "errors"})
_UNKNOWN: Final = "JSON, but no shipment of Spring"


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    for where, shipment in _shipments(read_json(body), rejections):
        yield from readings_of(
            _scans(shipment, where, received_at, rejections),
            text(shipment.get("TrackingNumber")),
            rejections,
            service=text(shipment.get("Service")),
        )


def _shipments(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    for where, member in members(body, "", rejections, unknown=_UNKNOWN):
        if type(member.get(_SHIPMENT)) in (dict, list):
            yield f"{where}/{_SHIPMENT}", child(member, _SHIPMENT)
        elif "Events" in member:
            yield where, member
        elif not _ERROR_FIELDS & member.keys():
            raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, _UNKNOWN)


def _scans(
    shipment: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, event in objects_at(shipment, "Events", where, rejections):
        where_at = place(
            city=event.get("City"),
            region=event.get("State"),
            postal_code=event.get("Zip"),
            country=event.get("Country"),
        )
        code = text(event.get("Code"))
        raw = Raw(code=code)
        yield Scan(
            where=f"{where}/Events/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=_time(event, where_at, received_at),
            place=where_at,
            description=text(event.get("Description")),
        )


def _time(event: JsonObject, where: EventPlace, received_at: datetime) -> PrintedTime | None:
    printed, seconds = text(event.get("DateTime")), text(event.get("Timestamp"))
    is_epoch = (
        seconds is not None and seconds.isascii() and seconds.isdigit() and len(seconds) <= 12
    )
    epoch = (
        read_epoch(int(seconds), received_at=received_at)
        if seconds is not None and is_epoch
        else None
    )
    if epoch is None or epoch.tz_source is TzSource.RECEIVED:
        return CLOCK.read(printed, where, received_at=received_at)
    if printed is None:
        return epoch
    return CLOCK.read_pair(
        printed, f"{epoch.instant:%Y-%m-%d %H:%M:%S}", where, received_at=received_at
    )


CARRIER: Final = Carrier(
    carrier_id="spring",
    name="Spring",
    number_fields=("TrackingNumber",),
    normalizers={"1": normalize},
    formats=("TrackShipment JSON",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
