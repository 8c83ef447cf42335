"""Österreichische Post: answers of its public tracking. Which fields an event has, the query decides: a state, or a status and its reason.

Times are in UTC, or local where they print no offset.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import ISO
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child, objects_at
from events.parsing.meanings import Meaning, finest, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("austrianpost_codes.csv")
"""(state, status, reason): a state by itself, or a status with its reason."""

CLOCK: Final = Clock(formats=ISO, default_zone="Europe/Vienna", country="AT")

_PARCEL: Final = "einzelsendung"
_NUMBERS: Final = ("sendungsnummer", "activeIdentityCode", "originalIdentityCode")
_INSIDE_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> list[Reading]:
    """Yield the events of one answer."""
    where, parcel = _parcel(read_json(body))
    number = next((found for name in _NUMBERS if (found := text(parcel.get(name)))), None)
    readings = readings_of(_scans(parcel, where, received_at, rejections), number, rejections)
    expected = text(child(parcel, "estimatedDelivery").get("startDate"))
    return with_estimate(readings, estimate(expected, ISO))


def _parcel(body: object) -> tuple[str, JsonObject]:
    if type(body) is dict and "sendungsEvents" in body:
        return "", body
    if type(body) is dict and (body == {} or "errors" in body or _PARCEL in child(body, "data")):
        return f"/data/{_PARCEL}", child(body, "data", _PARCEL)
    raise UnreadableMessageError(
        Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Österreichische Post"
    )


def _scans(
    parcel: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, event in objects_at(parcel, "sendungsEvents", where, rejections):
        raw = Raw(
            type=_state(event),
            code=text(event.get("status")),
            reason=text(event.get("reasontypecode")),
        )
        at = place(
            city=event.get("eventPlaceName"),
            postal_code=event.get("eventpostalcode"),
            country=event.get("eventcountry"),
        )
        yield Scan(
            where=f"{where}/sendungsEvents/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(text(event.get("timestamp")), at, received_at=received_at),
            place=at,
            description=text(event.get("textEn"))
            or text(event.get("trackingDesc"))
            or text(event.get("text")),
        )


def _state(event: JsonObject) -> str | None:
    """Return the state; `readyForPickUp` is the key of READY_FOR_PICK_UP."""
    printed = text(event.get("trackingStateKey")) or text(event.get("trackingState"))
    return None if printed is None else _INSIDE_WORDS.sub("_", printed).upper()


def _meaning(raw: Raw) -> Meaning:
    state, status, reason = raw.type or "", raw.code or "", raw.reason or ""
    known = (
        CODES.get((state, status, reason)) or CODES.get(("", status, reason)) if status else None
    )
    return finest((status, known), (state, CODES.get((state, "", ""))))


CARRIER: Final = Carrier(
    carrier_id="austrianpost",
    name="Österreichische Post",
    number_fields=("|".join(_NUMBERS),),
    normalizers={"1": normalize},
    formats=("Tracking JSON (GraphQL)",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
