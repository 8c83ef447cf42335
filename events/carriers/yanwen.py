"""Yanwen: the answer of its tracking API, a list of numbers with their checkpoints.

A number may be asked for by Yanwen's waybill or that of the last mile; Yanwen's own is the number
where it is stated. The offset is a field of its own, from `+8` to `+08:00`, and differs between
checkpoints.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("yanwen_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S][%f]]"),
    default_zone="Asia/Shanghai",
)

_RESULT: Final = "result"
_ERROR_FIELDS: Final = frozenset({"code", "message", "error", "errors"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, item in _items(kit.read_json(body), rejections):
        number = kit.text(item.get("waybill_number")) or kit.text(item.get("tracking_number"))
        yield from kit.readings_of(_scans(item, where, received_at, rejections), number, rejections)


def _items(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is list:
        for index, member in kit.objects(body, "", rejections):
            yield from ((f"/{index}{where}", item) for where, item in _items(member, rejections))
    elif type(body) is dict and _RESULT in body:
        yield from (
            (f"/{_RESULT}/{index}", item)
            for index, item in kit.objects_at(body, _RESULT, "", rejections)
        )
    elif type(body) is dict and "checkpoints" in body:
        yield "", body
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Yanwen"
        )


def _scans(
    item: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, checkpoint in kit.objects_at(item, "checkpoints", where, rejections):
        where_at = kit.place(city=checkpoint.get("location"))
        code = kit.text(checkpoint.get("tracking_status"))
        raw = kit.Raw(code=code)
        yield kit.Scan(
            where=f"{where}/checkpoints/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=_time(
                kit.text(checkpoint.get("time_stamp")),
                kit.text(checkpoint.get("time_zone")),
                where_at,
                received_at,
            ),
            place=where_at,
            description=kit.text(checkpoint.get("message")),
        )


def _time(
    printed: str | None, zone: str | None, where: kit.EventPlace, received_at: datetime
) -> kit.PrintedTime | None:
    time = CLOCK.read_with_offset(printed, zone, where, received_at=received_at)
    return (
        time
        if time is None or printed is None or zone is None
        else replace(time, printed=f"{printed} {zone}")
    )


CARRIER: Final = kit.Carrier(
    carrier_id="yanwen",
    name="Yanwen",
    number_fields=("waybill_number|tracking_number",),
    normalizers={"1": normalize},
    formats=("Tracking API JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
