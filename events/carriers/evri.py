"""Evri: answers of its tracking of parcels in the United Kingdom.

An event names a stage of the parcel's way (`4_COURIER`), and within it what happened, its tracking point, which says more.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.formats import ISO
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child, objects, objects_at
from events.parsing.meanings import Meaning, finest, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock
from events.vocabulary import Kind, Status

CODES: Final = meanings("evri_codes.csv")
"""(stage, tracking point); one of them stands for itself where the other is empty."""

CLOCK: Final = Clock(formats=ISO, default_zone="Europe/London", country="GB")

_BARCODE: Final = "BARCODE"
_NOT_DELIVERED: Final = "NOT_DELIVERED_"
_ATTEMPTED: Final = Meaning(Kind.SCAN, Status.DELIVERY_ATTEMPTED)


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    for index, parcel in _parcels(read_json(body), rejections):
        yield from readings_of(
            _scans(parcel, f"/results/{index}", received_at, rejections),
            _number(parcel),
            rejections,
        )


def _parcels(body: object, rejections: Rejections) -> list[tuple[int, JsonObject]]:
    if body in ({}, []):
        return []
    if type(body) is dict and "results" in body:
        return objects_at(body, "results", "", rejections)
    if type(body) is not dict or not {"failures", "error", "errors", "message"} & body.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Evri")
    return []


def _number(parcel: JsonObject) -> str | None:
    named = objects(parcel.get("parcelIdentifiers"), "", Rejections())
    return next(
        (
            number
            for _, each in named
            if each.get("type") == _BARCODE and (number := text(each.get("value")))
        ),
        None,
    )


def _scans(
    parcel: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, event in objects_at(parcel, "trackingEvents", where, rejections):
        stage, point = child(event, "trackingStage"), child(event, "trackingPoint")
        raw = Raw(
            type=text(stage.get("trackingStageCode")), code=text(point.get("trackingPointCode"))
        )
        yield Scan(
            where=f"{where}/trackingEvents/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(text(event.get("dateTime")), received_at=received_at),
            description=text(point.get("description")) or text(stage.get("description")),
        )


def _meaning(raw: Raw) -> Meaning:
    stage, point = raw.type or "", raw.code or ""
    known = CODES.get((stage, point)) or CODES.get(("", point)) if point else None
    failed = _ATTEMPTED.of_category() if point.startswith(_NOT_DELIVERED) else None
    return finest((point, known or failed), (stage, CODES.get((stage, ""))))


CARRIER: Final = Carrier(
    carrier_id="evri",
    name="Evri",
    number_fields=("parcelIdentifiers.value",),
    normalizers={"1": normalize},
    formats=("Enterprise tracking JSON",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
