"""Evri: answers of its tracking of parcels in the United Kingdom.

An event names a stage of the parcel's way (`4_COURIER`), and within it a finer tracking point.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# (stage, tracking point); where one is empty, the other alone decides.
CODES: Final = kit.meanings("evri_codes.csv")

CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="Europe/London", country="GB")

_BARCODE: Final = "BARCODE"
_NOT_DELIVERED: Final = "NOT_DELIVERED_"
_ATTEMPTED: Final = kit.Meaning(kit.Kind.SCAN, kit.Status.DELIVERY_ATTEMPTED)


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for index, parcel in _parcels(kit.read_json(body), rejections):
        yield from kit.readings_of(
            _scans(parcel, f"/results/{index}", received_at, rejections),
            _number(parcel),
            rejections,
        )


def _parcels(body: object, rejections: kit.Rejections) -> list[tuple[int, kit.JsonObject]]:
    if body in ({}, []):
        return []
    if type(body) is dict and "results" in body:
        return kit.objects_at(body, "results", "", rejections)
    if type(body) is not dict or not {"failures", "error", "errors", "message"} & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Evri"
        )
    return []


def _number(parcel: kit.JsonObject) -> str | None:
    named = kit.objects(parcel.get("parcelIdentifiers"), "", kit.Rejections())
    return next(
        (
            number
            for _, each in named
            if each.get("type") == _BARCODE and (number := kit.text(each.get("value")))
        ),
        None,
    )


def _scans(
    parcel: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(parcel, "trackingEvents", where, rejections):
        stage, point = kit.child(event, "trackingStage"), kit.child(event, "trackingPoint")
        raw = kit.Raw(
            type=kit.text(stage.get("trackingStageCode")),
            code=kit.text(point.get("trackingPointCode")),
        )
        yield kit.Scan(
            where=f"{where}/trackingEvents/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(kit.text(event.get("dateTime")), received_at=received_at),
            description=kit.text(point.get("description")) or kit.text(stage.get("description")),
        )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    stage, point = raw.type or "", raw.code or ""
    known = CODES.get((stage, point)) or CODES.get(("", point)) if point else None
    failed = _ATTEMPTED.of_category() if point.startswith(_NOT_DELIVERED) else None
    return kit.finest((point, known or failed), (stage, CODES.get((stage, ""))))


CARRIER: Final = kit.Carrier(
    carrier_id="evri",
    name="Evri",
    number_fields=("parcelIdentifiers.value",),
    normalizers={"1": normalize},
    formats=("Enterprise tracking JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
