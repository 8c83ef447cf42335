"""SmartKargo: a list of events, each with its own air waybill and piece.

A time is local to the station of the event, with the name of its IANA zone next to it in the
partner format only; a fraction may have seven digits.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("smartkargo_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(formats=kit.ISO, airports=True)

_WRAPPERS: Final = ("items", "events", "data", "trackings")
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message", "Message", "validations", "valid"})


@kit.normalizer
def normalize(body: bytes, received_at: datetime, rejections: kit.Rejections) -> list[kit.Reading]:
    readings: list[kit.Reading] = []
    estimates: list[str | None] = []
    for where, event in _events(kit.read_json(body), rejections):
        found = kit.readings_of((_scan(event, where, received_at),), _number(event), rejections)
        estimates += [
            kit.estimate(kit.text(event.get("estimatedDeliveryDate")), kit.ISO) for _ in found
        ]
        readings += found
    return _with_estimates(readings, estimates)


def _events(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is list:
        for index, event in kit.objects(body, "", rejections):
            if "eventType" not in event and "airWaybill" not in event:
                raise kit.UnreadableMessageError(
                    kit.Cause.UNKNOWN_FORMAT, "JSON, but no events of SmartKargo"
                )
            yield f"/{index}", event
        return
    if type(body) is not dict:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no events of SmartKargo"
        )
    wrapper = next((name for name in _WRAPPERS if type(body.get(name)) in (dict, list)), None)
    if "eventType" in body:
        yield "", body
    elif wrapper is not None:
        for index, event in kit.objects_at(body, wrapper, "", rejections):
            yield f"/{wrapper}/{index}", event
    elif not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no events of SmartKargo"
        )


def _number(event: kit.JsonObject) -> str | None:
    return (
        "-".join(part for name in ("prefix", "airWaybill") if (part := kit.text(event.get(name))))
        or None
    )


def _scan(event: kit.JsonObject, where: str, received_at: datetime) -> kit.Scan:
    location = kit.child(event, "location")
    where_at = kit.place(
        city=location.get("city"),
        region=location.get("state"),
        postal_code=location.get("zip"),
        country=location.get("countryId"),
        facility=event.get("eventLocation") or location.get("eventLocation"),
    )
    code, detail = kit.text(event.get("eventType")), kit.text(event.get("subEventType"))
    raw = kit.Raw(code=code, further=(detail,) if detail else ())
    return kit.Scan(
        where=where,
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read_with_offset(
            kit.text(event.get("eventDate")),
            # an IANA name, which only the partner format prints
            kit.text(location.get("timezone")),
            where_at,
            received_at=received_at,
        ),
        place=where_at,
        description=kit.text(event.get("description")),
        piece=kit.text(event.get("pieceReference")),
    )


def _with_estimates(readings: list[kit.Reading], estimates: list[str | None]) -> list[kit.Reading]:
    """Give each reading its estimate: every event prints that of its time, and that of the newest
    event of an air waybill holds.
    """
    found = list(readings)
    for number in {reading.tracking_number for reading in readings}:
        at = [index for index, reading in enumerate(readings) if reading.tracking_number == number]
        # every event prints the estimate of its own time
        newest = max(at, key=lambda index: readings[index].time.instant)
        for index, reading in zip(
            at, kit.with_estimate([readings[index] for index in at], estimates[newest]), strict=True
        ):
            found[index] = reading
    return found


CARRIER: Final = kit.Carrier(
    carrier_id="smartkargo",
    name="SmartKargo",
    number_fields=("prefix+airWaybill",),
    normalizers={"1": normalize},
    formats=("Tracking JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
