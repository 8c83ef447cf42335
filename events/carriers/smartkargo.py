"""SmartKargo: a list of events, each with its own air waybill and piece.

A time is local to the station of the event, with the name of its IANA zone next to it in the partner format and nothing in the other; a
fraction may have seven digits.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import ISO
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child, objects, objects_at
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("smartkargo_codes.csv")
_meaning: Final = by_code(CODES)

CLOCK: Final = Clock(formats=ISO, airports=True)

_WRAPPERS: Final = ("items", "events", "data", "trackings")
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message", "Message", "validations", "valid"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> list[Reading]:
    """Yield the events of one push or answer."""
    readings: list[Reading] = []
    estimates: list[str | None] = []
    for where, event in _events(read_json(body), rejections):
        found = readings_of((_scan(event, where, received_at),), _number(event), rejections)
        estimates += [estimate(text(event.get("estimatedDeliveryDate")), ISO) for _ in found]
        readings += found
    return _with_estimates(readings, estimates)


def _events(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is list:
        for index, event in objects(body, "", rejections):
            if "eventType" not in event and "airWaybill" not in event:
                raise UnreadableMessageError(
                    Cause.UNKNOWN_FORMAT, "JSON, but no events of SmartKargo"
                )
            yield f"/{index}", event
        return
    if type(body) is not dict:
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no events of SmartKargo")
    wrapper = next((name for name in _WRAPPERS if type(body.get(name)) in (dict, list)), None)
    if "eventType" in body:
        yield "", body
    elif wrapper is not None:
        for index, event in objects_at(body, wrapper, "", rejections):
            yield f"/{wrapper}/{index}", event
    elif not _ERROR_FIELDS & body.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no events of SmartKargo")


def _number(event: JsonObject) -> str | None:
    return (
        "-".join(part for name in ("prefix", "airWaybill") if (part := text(event.get(name))))
        or None
    )


def _scan(event: JsonObject, where: str, received_at: datetime) -> Scan:
    location = child(event, "location")
    where_at = place(
        city=location.get("city"),
        region=location.get("state"),
        postal_code=location.get("zip"),
        country=location.get("countryId"),
        facility=event.get("eventLocation") or location.get("eventLocation"),
    )
    code, detail = text(event.get("eventType")), text(event.get("subEventType"))
    raw = Raw(code=code, further=(detail,) if detail else ())
    return Scan(
        where=where,
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read_with_offset(
            text(event.get("eventDate")),
            text(location.get("timezone")),
            where_at,
            received_at=received_at,
        ),
        place=where_at,
        description=text(event.get("description")),
        piece=text(event.get("pieceReference")),
    )


def _with_estimates(readings: list[Reading], estimates: list[str | None]) -> list[Reading]:
    """Give each reading its estimate: every event prints that of its time, and that of the newest event of an air waybill holds."""
    found = list(readings)
    for number in {reading.tracking_number for reading in readings}:
        at = [index for index, reading in enumerate(readings) if reading.tracking_number == number]
        newest = max(at, key=lambda index: readings[index].time.instant)
        for index, reading in zip(
            at, with_estimate([readings[index] for index in at], estimates[newest]), strict=True
        ):
            found[index] = reading
    return found


CARRIER: Final = Carrier(
    carrier_id="smartkargo",
    name="SmartKargo",
    number_fields=("prefix+airWaybill",),
    normalizers={"1": normalize},
    formats=("Tracking JSON",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
