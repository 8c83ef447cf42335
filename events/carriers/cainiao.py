"""Cainiao: answers of its tracking of parcels across borders (`detail.json`), or a parcel of one.

A step prints the wall clock of its place with its zone (`GMT+8`); the number next to it is that
wall clock as if it were Beijing's, so it counts only where the text is absent. `[...]` before a
text is the place. An answer without steps has no scan.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("cainiao_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="Asia/Shanghai")

_BEIJING_SECONDS: Final = 8 * 3600
_BRACKETED: Final = re.compile(r"\[(?P<place>[^\[\]]{1,80})\]")


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, parcel in _parcels(kit.read_json(body), rejections):
        yield from kit.readings_of(
            _scans(parcel, where, received_at, rejections),
            kit.text(parcel.get("mailNo")),
            rejections,
        )


def _parcels(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is dict and "module" in body:
        for index, parcel in kit.objects_at(body, "module", "", rejections):
            yield f"/module/{index}", parcel
    elif type(body) is dict and "mailNo" in body:
        yield "", body
    elif type(body) is not dict or "success" not in body:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Cainiao"
        )


def _scans(
    parcel: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, step in kit.objects_at(parcel, "detailList", where, rejections):
        raw = kit.Raw(code=kit.text(step.get("actionCode")))
        words = kit.text(step.get("standerdDesc")) or kit.text(step.get("desc"))
        yield kit.Scan(
            where=f"{where}/detailList/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=_time(step, received_at),
            place=_place(words or ""),
            description=words,
        )


def _time(step: kit.JsonObject, received_at: datetime) -> kit.PrintedTime | None:
    return CLOCK.read_with_offset(
        # the text first: the number is its wall clock as if that were Beijing's
        kit.text(step.get("timeStr")) or _wall(step.get("time"), received_at),
        kit.text(step.get("timeZone")),
        received_at=received_at,
    )


def _wall(milliseconds: object, received_at: datetime) -> str | None:
    if type(milliseconds) is not int:
        return kit.text(milliseconds)
    found = kit.read_epoch(milliseconds // 1000 + _BEIJING_SECONDS, received_at=received_at)
    return (
        str(milliseconds)
        if found is None
        else found.instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    )


def _place(words: str) -> kit.EventPlace:
    found = _BRACKETED.match(words)
    return kit.place(city=found["place"] if found else None)


CARRIER: Final = kit.Carrier(
    carrier_id="cainiao",
    name="Cainiao",
    number_fields=("mailNo",),
    normalizers={"1": normalize},
    formats=("Tracking detail JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
