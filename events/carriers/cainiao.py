"""Cainiao: answers of its tracking of parcels across borders (`detail.json`), and one parcel of such an answer by itself.

A step prints the wall clock of its place with its zone (`GMT+8`); the number next to it is that wall clock as if it were Beijing's, so it
counts only where the text is absent. `[...]` before a text is the place. An answer without steps is no scan.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, PrintedTime, Raw, Reading
from events.parsing.formats import ISO
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, objects_at
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock, read_epoch

CODES: Final = meanings("cainiao_codes.csv")
_meaning: Final = by_code(CODES)

CLOCK: Final = Clock(formats=ISO, default_zone="Asia/Shanghai")

_BEIJING_SECONDS: Final = 8 * 3600
_BRACKETED: Final = re.compile(r"\[(?P<place>[^\[\]]{1,80})\]")


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    for where, parcel in _parcels(read_json(body), rejections):
        yield from readings_of(
            _scans(parcel, where, received_at, rejections), text(parcel.get("mailNo")), rejections
        )


def _parcels(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is dict and "module" in body:
        for index, parcel in objects_at(body, "module", "", rejections):
            yield f"/module/{index}", parcel
    elif type(body) is dict and "mailNo" in body:
        yield "", body
    elif type(body) is not dict or "success" not in body:
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Cainiao"
        )


def _scans(
    parcel: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, step in objects_at(parcel, "detailList", where, rejections):
        raw = Raw(code=text(step.get("actionCode")))
        words = text(step.get("standerdDesc")) or text(step.get("desc"))
        yield Scan(
            where=f"{where}/detailList/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=_time(step, received_at),
            place=_place(words or ""),
            description=words,
        )


def _time(step: JsonObject, received_at: datetime) -> PrintedTime | None:
    return CLOCK.read_with_offset(
        text(step.get("timeStr")) or _wall(step.get("time"), received_at),
        text(step.get("timeZone")),
        received_at=received_at,
    )


def _wall(milliseconds: object, received_at: datetime) -> str | None:
    if type(milliseconds) is not int:
        return text(milliseconds)
    found = read_epoch(milliseconds // 1000 + _BEIJING_SECONDS, received_at=received_at)
    return (
        str(milliseconds)
        if found is None
        else found.instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    )


def _place(words: str) -> EventPlace:
    found = _BRACKETED.match(words)
    return place(city=found["place"] if found else None)


CARRIER: Final = Carrier(
    carrier_id="cainiao",
    name="Cainiao",
    number_fields=("mailNo",),
    normalizers={"1": normalize},
    formats=("Tracking detail JSON",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
