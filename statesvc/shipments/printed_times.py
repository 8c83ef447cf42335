"""Times as a reader of evidence sees them: no more exact than the carrier stated them,
and always with the zone.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from events.event import EventPlace
from events.parsing.zones import zone_of

# Texts for an offset that the carrier did not print itself, by `tz_source`.
ZONES: Final = {
    "assumed_utc": "no zone given, read as UTC",
    "received": "no time given: that of receipt",
    "carrier_default": "carrier's home zone",
    "location": "zone of the place",
}

_STATED_ZONES: Final = frozenset({"explicit", "pair"})


def carrier_time(document: Mapping[str, Any]) -> str:
    """Format when an event happened, on the carrier's own clock, sortable as text:
    `2026-03-01 14:05 UTC-05:00`.
    """
    at = datetime.fromisoformat(document["occurred_at"])
    clock = {"day": "%Y-%m-%d", "minute": f"%Y-%m-%d %H:%M {offset(at)}"}.get(
        document["time_precision"], f"%Y-%m-%d %H:%M:%S {offset(at)}"
    )
    return at.strftime(clock) + _source(document)


def stated_time(document: Mapping[str, Any]) -> str:
    """Format the time as evidence prints it, everywhere: `1 Mar 2026, 14:05 UTC-05:00`, with the
    source of a zone of ours.
    """
    return short_time(document) + _source(document)


def short_time(document: Mapping[str, Any]) -> str:
    """Format the time for a page that gives the zone's source elsewhere."""
    at = datetime.fromisoformat(document["occurred_at"])
    return _day(at) + _clock(document, ", ")


def zone_source(document: Mapping[str, Any]) -> str:
    """Return the origin of an assumed zone; empty where the carrier stated the zone."""
    return ZONES.get(document["tz_source"], "")


def stated_time_in_a_sentence(document: Mapping[str, Any]) -> str:
    """Format the time for the answer of the first page: `1 March 2026 at 14:05 UTC-05:00`."""
    at = datetime.fromisoformat(document["occurred_at"])
    return f"{at.day} {at:%B %Y}" + _clock(document, " at ") + _source(document)


def local_time(document: Mapping[str, Any], location: Mapping[str, str]) -> str:
    """Return the local time of a scan stated in another zone: `25 Nov 2026, 19:15 in Oakland`.

    Computed from the place. Empty where the place has no certain zone, the carrier stated that
    zone, or the time is not exact.
    """
    # an assumed zone may be this very one: the computed time would only look exact
    if document["time_precision"] == "day" or document["tz_source"] not in _STATED_ZONES:
        return ""
    local = zone_of(
        EventPlace(**{part: location[part] for part in EventPlace._fields if part in location})
    )
    at = datetime.fromisoformat(document["occurred_at"])
    if (
        local is None
        # a wrong hour on evidence is worse than none
        or not local.certain
        or at.astimezone(local.zone).utcoffset() == at.utcoffset()
    ):
        return ""
    there = at.astimezone(local.zone)
    return (
        f"{_day(there)}, {there:%H:%M} in"
        f" {location.get('city') or location.get('region') or location['country']}"
    )


def days_between(first: datetime, last: datetime) -> str:
    """Format a span of days: `1 Mar 2026 to 4 Mar 2026`."""
    return _day(first) if _day(first) == _day(last) else f"{_day(first)} to {_day(last)}"


def stated_instant(text: str) -> str:
    """Format an instant in the offset that it is written with."""
    at = datetime.fromisoformat(text)
    return f"{at:%Y-%m-%d %H:%M:%S} {offset(at)}"


def utc(text: str) -> str:
    """Format an instant of our own clock."""
    at = datetime.fromisoformat(text).astimezone(UTC)
    return f"{_day(at)}, {at:%H:%M:%S} UTC"


def offset(at: datetime) -> str:
    """Format `UTC`, or `UTC-05:00`."""
    printed = f"{at:%z}"
    return "UTC" if printed == "+0000" else f"UTC{printed[:3]}:{printed[3:5]}"


def day(text: str) -> str:
    """Format the day of a date, or of a time as it is written."""
    return _day(datetime.fromisoformat(text))


def _day(at: datetime) -> str:
    return f"{at.day} {at:%b %Y}"


def _clock(document: Mapping[str, Any], separator: str) -> str:
    """Format the time of day as exactly as the carrier stated it, with the zone."""
    at = datetime.fromisoformat(document["occurred_at"])
    if document["time_precision"] == "day":
        return ""
    # carriers that print minutes fill the seconds with zeros
    is_exact = document["time_precision"] == "second" and at.second
    return separator + (f"{at:%H:%M:%S}" if is_exact else f"{at:%H:%M}") + f" {offset(at)}"


def _source(document: Mapping[str, Any]) -> str:
    zone = zone_source(document)
    return f" ({zone})" if zone else ""
