"""Rules for the readings of every carrier, applied to the output of its own reader.

A message without readings and without rejections must itself declare that it is empty. Zones that
are printed beside a time count. A date before carriers printed tracking is a placeholder. A code is
not believed if its text contradicts it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import wraps
from typing import Final

from events.carriers.contradictions import without_contradictions
from events.errors import UnreadableMessageError
from events.event import Normalized, Reading
from events.parsing.forms import form_fields
from events.parsing.json import read_json
from events.parsing.printed_zones import with_printed_zones
from events.parsing.rejections import Rejections
from events.parsing.silence import NO_CONTAINER, says_nothing, xml_holds_dated
from events.parsing.times import received
from events.parsing.xml import is_xml, read_xml

PLACEHOLDER: Final = "a date before 1990 is no scan's: it stands for none"
_FIRST_YEAR: Final = 1990


def normalizer(
    read: Callable[[bytes, datetime, Rejections], Iterable[Reading]],
) -> Callable[[bytes, datetime], Normalized]:
    """Make a carrier's `normalize` of a generator of its readings, which adds to the rejections on
    the way. Never silent.
    """
    carrier = read.__module__.rpartition(".")[2]

    @wraps(read)
    def normalize(body: bytes, received_at: datetime) -> Normalized:
        rejections = Rejections()
        readings: Sequence[Reading] = tuple(read(body, received_at, rejections))
        readings = with_printed_zones(readings, body, carrier, rejections)
        readings = _without_placeholders(readings, received_at, rejections)
        readings = without_contradictions(readings, carrier)
        if (
            not readings
            and not rejections
            and not rejections.says_nothing
            and not _says_nothing(body)
        ):
            rejections.add("", NO_CONTAINER)
        return Normalized(readings=tuple(readings), rejections=tuple(rejections))

    return normalize


def _without_placeholders(
    readings: Sequence[Reading], received_at: datetime, rejections: Rejections
) -> Sequence[Reading]:
    """Return the readings, with the time received in place of dates that stand for none
    (1969-12-31).
    """
    if all(each.time.instant.year >= _FIRST_YEAR for each in readings):
        return readings
    rejections.add("", PLACEHOLDER)
    return [
        each
        if each.time.instant.year >= _FIRST_YEAR
        else replace(each, time=received(received_at, each.time.printed))
        for each in readings
    ]


def _says_nothing(body: bytes) -> bool:
    return all(map(_part_says_nothing, form_fields(body).values() or (body,)))


def _part_says_nothing(content: bytes) -> bool:
    try:
        return (
            not xml_holds_dated(read_xml(content).root)
            if is_xml(content)
            else says_nothing(read_json(content), deep=True)
        )
    except UnreadableMessageError:
        return True
