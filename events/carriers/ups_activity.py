"""A UPS activity, from any format."""

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Final

from events.carriers import kit
from events.carriers.ups_codes import meaning

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%Y%m%d %H%M%S", "%Y%m%d %H:%M:%S", "%Y%m%d %H%M", "%Y%m%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d"
    ),
    default_zone="America/New_York",
)

UNREADABLE_TIME: Final = "a time in no known format"
EMPTY: Final = "neither code, text nor time"
# Placeholders in UPS's own samples where a value belongs.
PLACEHOLDERS: Final = frozenset({"string"})


@kit.value(frozen=True, slots=True, kw_only=True)
class Activity:
    """The fields of an activity as printed. Dates and times are separate, as UPS prints them."""

    number: str | None
    type: str | None
    code: str | None
    text: str | None
    place: kit.EventPlace
    further: tuple[str, ...] = ()
    date: str | None = None
    time: str | None = None
    gmt_date: str | None = None
    gmt_time: str | None = None
    gmt_offset: str | None = None
    signer: object = None
    service: str | None = None
    estimate: str | None = None
    """Estimated delivery, as an ISO date, where the activity itself prints it."""


def read_activity(
    activity: Activity, received_at: datetime, journey: kit.Journey = kit.NO_JOURNEY
) -> kit.Reading | str:
    """Read an activity, or return why it cannot be read.

    The creation of a label is printed in its shipper's time, with a country alone.
    """
    # what states nothing would be read as a scan at the time of its receipt
    if activity.code is None and activity.text is None and activity.date is None:
        return EMPTY
    status_code = activity.further[0] if activity.further else None
    kind, status, reason, by_category = meaning(
        activity.type, activity.code, activity.text, status_code
    )
    time = _time(activity, received_at, journey.at(status))
    if time is None:
        return UNREADABLE_TIME
    return kit.Reading(
        tracking_number=activity.number,
        kind=kind,
        raw=kit.Raw(type=activity.type, code=activity.code, further=activity.further),
        time=time,
        place=activity.place,
        status=status,
        reason=reason,
        by_category=by_category,
        description=activity.text,
        # a name beside another activity would read as the proof of a delivery
        signed_by=kit.signer(activity.signer) if status is kit.Status.DELIVERED else None,
        service=activity.service,
        estimated_delivery=activity.estimate
        # a scheduled date stays printed after the delivery, and is no estimate then
        if kind is kit.Kind.SCAN and status is not kit.Status.DELIVERED
        else None,
    )


def journey_of(
    activities: Iterable[Activity],
    origin: kit.EventPlace = kit.NOWHERE,
    destination: kit.EventPlace = kit.NOWHERE,
) -> kit.Journey:
    """Return the way of a package; where its origin is not printed, the place of its first activity
    that has more than a country.
    """
    # the creation of a label has a country alone, and is printed in its shipper's time
    if origin == kit.NOWHERE:
        placed = [one for one in activities if one.place.region or one.place.city]
        origin = (
            # by the date as printed, which sorts: times are not read yet, they need this place
            min(placed, key=lambda one: (one.date or "", one.time or "")).place
            if placed
            else kit.NOWHERE
        )
    return kit.Journey(origin, destination)


@lru_cache(maxsize=1024)
def iso_date(printed: str | None) -> str | None:
    """Convert `20260301` to `2026-03-01`; None for anything that is no date."""
    wall = CLOCK.formats.read(printed) if printed else None
    return None if wall is None or wall.is_sentinel else wall.local.date().isoformat()


def _time(
    activity: Activity, received_at: datetime, journey: kit.Journey
) -> kit.PrintedTime | None:
    printed = _joined(activity.date, activity.time)
    # the pair first: it shows the offset even where `gmtOffset` is left out
    if activity.gmt_date and activity.gmt_time:
        utc = _joined(activity.gmt_date, activity.gmt_time)
        return CLOCK.read_pair(
            printed, utc, activity.place, received_at=received_at, journey=journey
        )
    return CLOCK.read_with_offset(
        printed, activity.gmt_offset, activity.place, received_at=received_at, journey=journey
    )


def _joined(date: str | None, time: str | None) -> str | None:
    if date is None:
        return None
    return date if time is None else f"{date} {time}"
