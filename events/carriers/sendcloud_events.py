"""Sendcloud v3: a parcel's tracking events, from event subscriptions and the tracking API.

An event has a phase, an exception on it and a particular (`sub_status`); the deciding word is the
exception, or without one the phase. The tracking API prints that word alone, as `status_code`.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# (level, code): of a `phase`, an `exception`, a `sub_status`, which gives an attempt or an
# exception its reason.
CODES: Final = kit.meanings("sendcloud_events_codes.csv")

CLOCK: Final = kit.Clock(formats=kit.ISO)

PARCEL_CREATED: Final = "parcel.created"

_NONE: Final = frozenset({"none"})


def readings_of_push(
    data: kit.JsonObject, received_at: datetime, rejections: kit.Rejections
) -> list[kit.Reading]:
    """Return the event of a push (`parcels.event.created`)."""
    event = kit.child(data, "event")
    if not event:
        return []
    phase, exception = (
        kit.text_unless(event.get("phase"), _NONE),
        kit.text_unless(event.get("exception"), _NONE),
    )
    raw = kit.Raw(
        type=phase if exception else None,
        code=exception or phase,
        reason=kit.text_unless(event.get("sub_status"), _NONE),
    )
    at = _place(kit.child(event, "location_details"))
    scan = kit.Scan(
        where="/data/event",
        raw=raw,
        meaning=meaning(raw),
        time=CLOCK.read(kit.text(event.get("timestamp")), at, received_at=received_at),
        place=at,
        description=kit.text(event.get("description")),
    )
    return kit.readings_of(
        (scan,), kit.text(kit.child(data, "parcel").get("tracking_number")), rejections
    )


def readings_of_parcel(
    parcel: kit.JsonObject, received_at: datetime, rejections: kit.Rejections
) -> list[kit.Reading]:
    """Return the event of a push `parcel.created`."""
    if not parcel:
        return []
    raw = kit.Raw(code=PARCEL_CREATED)
    scan = kit.Scan(
        where="/data",
        raw=raw,
        meaning=meaning(raw),
        time=CLOCK.read(kit.text(parcel.get("created_at")), received_at=received_at),
    )
    return kit.readings_of((scan,), _number(parcel, rejections), rejections)


def readings_of_answer(
    parcel: kit.JsonObject, received_at: datetime, rejections: kit.Rejections
) -> list[kit.Reading]:
    found = kit.readings_of(
        _scans(parcel, received_at, rejections), _number(parcel, rejections), rejections
    )
    return kit.with_estimate(
        found,
        kit.estimate(kit.text(kit.child(parcel, "details").get("expected_delivery_date")), kit.ISO),
    )


def _number(parcel: kit.JsonObject, rejections: kit.Rejections) -> str | None:
    numbers = (
        kit.text(each.get("tracking_number"))
        for _, each in kit.objects(parcel.get("tracking_numbers"), "/tracking_numbers", rejections)
    )
    return next((number for number in numbers if number), None)


def _scans(
    parcel: kit.JsonObject, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(parcel, "events", "", rejections):
        raw = kit.Raw(
            code=kit.text_unless(event.get("status_code"), _NONE),
            reason=kit.text_unless(event.get("sub_status_code"), _NONE),
        )
        yield kit.Scan(
            where=f"/events/{index}",
            raw=raw,
            meaning=meaning(raw),
            time=CLOCK.read(kit.text(event.get("event_at")), received_at=received_at),
            description=kit.text(event.get("status_description")),
        )


def meaning(raw: kit.Raw) -> kit.Meaning:
    """Read the exception, or the phase, with the reason that the particular gives."""
    code = raw.code or ""
    exception, phase = CODES.get(("exception", code)), CODES.get(("phase", raw.type or code))
    particular = CODES.get(("sub_status", raw.reason or ""))
    found = kit.finest((raw.code, exception or (None if raw.type else phase)), (raw.type, phase))
    if (
        phase is not None
        and phase.status is kit.Status.DELIVERY_ATTEMPTED
        and found.status is kit.Status.EXCEPTION
    ):
        found = found._replace(status=kit.Status.DELIVERY_ATTEMPTED)
    if (
        phase is not None
        and phase.status is kit.Status.DELIVERED
        and found.status is kit.Status.RETURNING
    ):
        return found._replace(status=kit.Status.RETURNED)
    if (
        particular is None
        or found.kind is not kit.Kind.SCAN
        or found.status not in (kit.Status.EXCEPTION, kit.Status.DELIVERY_ATTEMPTED)
    ):
        return found
    # the only particular that ends the journey; the others give a reason
    if particular.status is kit.Status.DESTROYED:
        return particular
    return found._replace(reason=particular.reason or found.reason)


def _place(location: kit.JsonObject) -> kit.EventPlace:
    """Return the place without its street, which is an addressee's."""
    return kit.place(
        city=location.get("city"),
        postal_code=location.get("postal_code"),
        country=location.get("country"),
        facility=location.get("service_point_id") or location.get("depot"),
    )
