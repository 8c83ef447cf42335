"""Scans with a code and a text of different statuses are kept unmapped until a table decides.

Only a text that as a whole is a known text counts, only statuses that a parcel cannot have
together, and not a text that the carrier's public list prints for this very code.
"""

import csv
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Final

from events.event import Raw, Reading
from events.parsing.sentences import as_compared
from events.text_proposals import stated_status
from events.vocabulary import Kind, Status

_EXCLUSIVE: Final = frozenset(
    {
        Status.DELIVERED,
        Status.RETURNING,
        Status.RETURNED,
        Status.CANCELLED,
        Status.LOST,
        Status.DESTROYED,
        Status.EXCEPTION,
        Status.DELIVERY_ATTEMPTED,
    }
)
# Compatible statuses and texts: a delivery may be a return, and a return has its reason.
_MAY_SAY: Final = frozenset(
    {
        (Status.RETURNED, Status.DELIVERED),
        (Status.RETURNED, Status.RETURNING),
        (Status.RETURNING, Status.EXCEPTION),
        (Status.RETURNING, Status.DELIVERY_ATTEMPTED),
        (Status.DELIVERY_ATTEMPTED, Status.EXCEPTION),
    }
)


def without_contradictions(readings: Sequence[Reading], carrier: str) -> Sequence[Reading]:
    """Return the readings, unmapping those that contradict their text."""
    if not any(each.status in _EXCLUSIVE for each in readings):
        return readings
    return [_believed(each, carrier) for each in readings]


def _believed(reading: Reading, carrier: str) -> Reading:
    raw, text = reading.raw, reading.description
    if (
        reading.kind is not Kind.SCAN
        or reading.status not in _EXCLUSIVE
        or text is None
        or (raw.code is None and raw.type is None)
    ):
        return reading
    stated = stated_status(text)
    if (
        stated not in _EXCLUSIVE
        or stated is reading.status
        or (reading.status, stated) in _MAY_SAY
        or _is_published(carrier, raw, as_compared(text))
    ):
        return reading
    return replace(
        reading,
        kind=Kind.UNMAPPED,
        status=None,
        reason=None,
        by_category=False,
        contradicted=stated,
    )


def _is_published(carrier: str, raw: Raw, words: str) -> bool:
    """Return whether the carrier's public list prints this text for this code."""
    printed = {raw.type, raw.code, raw.reason}
    return any(set(key) - {""} <= printed for key in _published(carrier).get(words, ()))


@cache
def _published(carrier: str) -> dict[str, list[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for entry in files("events.carriers").joinpath("lists").iterdir():
        if not entry.name.startswith(f"{carrier}_"):
            continue
        rows = list(csv.reader(entry.read_text("utf-8").splitlines()))
        width = rows[0].index("meaning")
        for row in rows[1:]:
            found.setdefault(as_compared(row[width]), []).append(tuple(row[:width]))
    return found
