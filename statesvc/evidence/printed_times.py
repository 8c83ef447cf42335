"""Times as a reader of evidence sees them: no more exact than the carrier stated them, and always with the zone."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

ZONES: Final = {
    "assumed_utc": "no zone given, read as UTC",
    "received": "no time given: that of receipt",
    "carrier_default": "carrier's home zone",
    "location": "zone of the place",
}
"""What is said of an offset that the carrier did not print itself, by `tz_source`."""


def carrier_time(document: Mapping[str, Any]) -> str:
    """When an event happened, on the carrier's own clock, sortable as text: `2026-03-01 14:05 UTC-05:00`."""
    at = datetime.fromisoformat(document["occurred_at"])
    clock = {"day": "%Y-%m-%d", "minute": f"%Y-%m-%d %H:%M {offset(at)}"}.get(document["time_precision"], f"%Y-%m-%d %H:%M:%S {offset(at)}")
    return at.strftime(clock) + _source(document)


def carrier_time_in_words(document: Mapping[str, Any]) -> str:
    """The same for a summary: `1 March 2026, 14:05 (UTC-05:00)`."""
    at = datetime.fromisoformat(document["occurred_at"])
    day = f"{at.day} {at:%B %Y}"
    if document["time_precision"] == "day":
        return day + _source(document)
    clock = f"{at:%H:%M}" if document["time_precision"] == "minute" else f"{at:%H:%M:%S}"
    return f"{day}, {clock} ({offset(at)}{_source(document).replace(' (', ', ').rstrip(')')})"


def stated_instant(text: str) -> str:
    """An instant in the offset that it is written with."""
    at = datetime.fromisoformat(text)
    return f"{at:%Y-%m-%d %H:%M:%S} {offset(at)}"


def utc(text: str) -> str:
    """An instant of ours."""
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def offset(at: datetime) -> str:
    """`UTC`, or `UTC-05:00`."""
    printed = f"{at:%z}"
    return "UTC" if printed == "+0000" else f"UTC{printed[:3]}:{printed[3:5]}"


def _source(document: Mapping[str, Any]) -> str:
    zone = ZONES.get(document["tz_source"])
    return f" ({zone})" if zone else ""
