"""Österreichische Post: answers of its public tracking.

Which fields an event has, the query decides: a state, or a status and its reason.

Times are in UTC, or local where they print no offset.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# (state, status, reason): a state by itself, or a status with its reason.
CODES: Final = kit.meanings("austrianpost_codes.csv")

CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="Europe/Vienna", country="AT")

_PARCEL: Final = "einzelsendung"
_NUMBERS: Final = ("sendungsnummer", "activeIdentityCode", "originalIdentityCode")
_INSIDE_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@kit.normalizer
def normalize(body: bytes, received_at: datetime, rejections: kit.Rejections) -> list[kit.Reading]:
    where, parcel = _parcel(kit.read_json(body), rejections)
    number = next((found for name in _NUMBERS if (found := kit.text(parcel.get(name)))), None)
    readings = kit.readings_of(_scans(parcel, where, received_at, rejections), number, rejections)
    expected = kit.text(kit.child(parcel, "estimatedDelivery").get("startDate"))
    return kit.with_estimate(readings, kit.estimate(expected, kit.ISO))


def _parcel(body: object, rejections: kit.Rejections) -> tuple[str, kit.JsonObject]:
    if type(body) is dict and "sendungsEvents" in body:
        return "", body
    if type(body) is dict and ("errors" in body or _PARCEL in kit.child(body, "data")):
        data = kit.child(body, "data")
        return f"/data/{_PARCEL}", kit.object_at(data, _PARCEL, "/data", rejections)
    raise kit.UnreadableMessageError(
        kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Österreichische Post"
    )


def _scans(
    parcel: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(parcel, "sendungsEvents", where, rejections):
        raw = kit.Raw(
            type=_state(event),
            code=kit.text(event.get("status")),
            reason=kit.text(event.get("reasontypecode")),
        )
        at = kit.place(
            city=event.get("eventPlaceName"),
            postal_code=event.get("eventpostalcode"),
            country=event.get("eventcountry"),
        )
        yield kit.Scan(
            where=f"{where}/sendungsEvents/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(kit.text(event.get("timestamp")), at, received_at=received_at),
            place=at,
            description=kit.text(event.get("textEn"))
            or kit.text(event.get("trackingDesc"))
            or kit.text(event.get("text")),
        )


def _state(event: kit.JsonObject) -> str | None:
    """Return the state; `readyForPickUp` is the key of READY_FOR_PICK_UP."""
    printed = kit.text(event.get("trackingStateKey")) or kit.text(event.get("trackingState"))
    # `readyForPickUp` is the key of READY_FOR_PICK_UP: which of them is printed, the query decides
    return None if printed is None else _INSIDE_WORDS.sub("_", printed).upper()


def _meaning(raw: kit.Raw) -> kit.Meaning:
    state, status, reason = raw.type or "", raw.code or "", raw.reason or ""
    known = (
        CODES.get((state, status, reason)) or CODES.get(("", status, reason)) if status else None
    )
    return kit.finest((status, known), (state, CODES.get((state, "", ""))))


CARRIER: Final = kit.Carrier(
    carrier_id="austrianpost",
    name="Österreichische Post",
    number_fields=("|".join(_NUMBERS),),
    normalizers={"1": normalize},
    formats=("Tracking JSON (GraphQL)",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
