"""Sendcloud v3: events of a parcel's tracking, as its event subscriptions push them and its tracking API answers them.

An event has a phase, an exception on it and a particular (`sub_status`); the word that decides is the exception, or without one the phase.
The tracking API prints that word alone, as `status_code`.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.event import EventPlace, Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import ISO
from events.parsing.lists import JsonObject, child, objects, objects_at
from events.parsing.meanings import Meaning, finest, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text, text_unless
from events.parsing.times import Clock
from events.vocabulary import Kind, Status

CODES: Final = meanings("sendcloud_events_codes.csv")
"""(level, code): of a `phase`, an `exception`, a `sub_status`, which gives an attempt or an exception its reason."""

CLOCK: Final = Clock(formats=ISO)

_NONE: Final = frozenset({"none"})


def readings_of_push(
    data: JsonObject, received_at: datetime, rejections: Rejections
) -> list[Reading]:
    """Return the event of one push (`parcels.event.created`)."""
    event = child(data, "event")
    if not event:
        return []
    phase, exception = (
        text_unless(event.get("phase"), _NONE),
        text_unless(event.get("exception"), _NONE),
    )
    raw = Raw(
        type=phase if exception else None,
        code=exception or phase,
        reason=text_unless(event.get("sub_status"), _NONE),
    )
    at = _place(child(event, "location_details"))
    scan = Scan(
        where="/data/event",
        raw=raw,
        meaning=meaning(raw),
        time=CLOCK.read(text(event.get("timestamp")), at, received_at=received_at),
        place=at,
        description=text(event.get("description")),
    )
    return readings_of((scan,), text(child(data, "parcel").get("tracking_number")), rejections)


def readings_of_answer(
    parcel: JsonObject, received_at: datetime, rejections: Rejections
) -> list[Reading]:
    numbers = (
        text(each.get("tracking_number"))
        for _, each in objects(parcel.get("tracking_numbers"), "/tracking_numbers", rejections)
    )
    found = readings_of(
        _scans(parcel, received_at, rejections),
        next((number for number in numbers if number), None),
        rejections,
    )
    return with_estimate(
        found, estimate(text(child(parcel, "details").get("expected_delivery_date")), ISO)
    )


def _scans(parcel: JsonObject, received_at: datetime, rejections: Rejections) -> Iterator[Scan]:
    for index, event in objects_at(parcel, "events", "", rejections):
        raw = Raw(
            code=text_unless(event.get("status_code"), _NONE),
            reason=text_unless(event.get("sub_status_code"), _NONE),
        )
        yield Scan(
            where=f"/events/{index}",
            raw=raw,
            meaning=meaning(raw),
            time=CLOCK.read(text(event.get("event_at")), received_at=received_at),
            description=text(event.get("status_description")),
        )


def meaning(raw: Raw) -> Meaning:
    """Read the exception, or the phase, with the reason that the particular gives."""
    code = raw.code or ""
    exception, phase = CODES.get(("exception", code)), CODES.get(("phase", raw.type or code))
    particular = CODES.get(("sub_status", raw.reason or ""))
    found = finest((raw.code, exception or (None if raw.type else phase)), (raw.type, phase))
    if (
        phase is not None
        and phase.status is Status.DELIVERY_ATTEMPTED
        and found.status is Status.EXCEPTION
    ):
        found = found._replace(status=Status.DELIVERY_ATTEMPTED)
    if phase is not None and phase.status is Status.DELIVERED and found.status is Status.RETURNING:
        return found._replace(status=Status.RETURNED)
    if (
        particular is None
        or found.kind is not Kind.SCAN
        or found.status not in (Status.EXCEPTION, Status.DELIVERY_ATTEMPTED)
    ):
        return found
    if particular.status is Status.DESTROYED:
        return particular
    return found._replace(reason=particular.reason or found.reason)


def _place(location: JsonObject) -> EventPlace:
    """Return the place without its street, which is an addressee's."""
    return place(
        city=location.get("city"),
        postal_code=location.get("postal_code"),
        country=location.get("country"),
        facility=location.get("service_point_id") or location.get("depot"),
    )
