"""Yanwen: the answer of its tracking API, a list of numbers with their checkpoints.

A number may be asked for by Yanwen's waybill or that of the last mile; Yanwen's own is the number where it is stated. The offset stands
in a field of its own, from `+8` to `+08:00`, and differs between checkpoints.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, PrintedTime, Raw, Reading
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, objects, objects_at
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("yanwen_codes.csv")
_meaning: Final = by_code(CODES)

CLOCK: Final = Clock(
    formats=TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S][%f]]"),
    default_zone="Asia/Shanghai",
)

_RESULT: Final = "result"
_ERROR_FIELDS: Final = frozenset({"code", "message", "error", "errors"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    for where, item in _items(read_json(body), rejections):
        number = text(item.get("waybill_number")) or text(item.get("tracking_number"))
        yield from readings_of(_scans(item, where, received_at, rejections), number, rejections)


def _items(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is list:
        for index, member in objects(body, "", rejections):
            yield from ((f"/{index}{where}", item) for where, item in _items(member, rejections))
    elif type(body) is dict and _RESULT in body:
        yield from (
            (f"/{_RESULT}/{index}", item)
            for index, item in objects_at(body, _RESULT, "", rejections)
        )
    elif type(body) is dict and "checkpoints" in body:
        yield "", body
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Yanwen")


def _scans(
    item: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, checkpoint in objects_at(item, "checkpoints", where, rejections):
        where_at = place(city=checkpoint.get("location"))
        code = text(checkpoint.get("tracking_status"))
        raw = Raw(code=code)
        yield Scan(
            where=f"{where}/checkpoints/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=_time(
                text(checkpoint.get("time_stamp")),
                text(checkpoint.get("time_zone")),
                where_at,
                received_at,
            ),
            place=where_at,
            description=text(checkpoint.get("message")),
        )


def _time(
    printed: str | None, zone: str | None, where: EventPlace, received_at: datetime
) -> PrintedTime | None:
    time = CLOCK.read_with_offset(printed, zone, where, received_at=received_at)
    return (
        time
        if time is None or printed is None or zone is None
        else replace(time, printed=f"{printed} {zone}")
    )


CARRIER: Final = Carrier(
    carrier_id="yanwen",
    name="Yanwen",
    number_fields=("waybill_number|tracking_number",),
    normalizers={"1": normalize},
    formats=("Tracking API JSON",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
