"""Zones and UTC times that a message prints beside a scan's time, compared with the reading.

Where a format prints an instant and a wall clock, the instant counts, and their difference is the
zone. A zone in a field of its own that the reader does not know replaces a default zone; a
contradiction of a printed offset is rejected. Holds for every reader, so a field named after a
zone, offset, UTC or GMT is never ignored silently.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from lxml import etree

from events.event import PrintedTime, Reading
from events.parsing.formats import ISO, read_offset
from events.parsing.forms import form_fields
from events.parsing.json import json_values
from events.parsing.rejections import Rejections
from events.parsing.silence import squashed
from events.parsing.text import text
from events.parsing.times import PAIR_TOLERANCE, at_offset, offset_between, zone_named
from events.parsing.xml import is_xml, read_xml
from events.vocabulary import TimePrecision, TzSource

# Fields of carriers that print a wrong zone, which their readers know.
UNTRUE: Final = {"cainiao": frozenset({"timezone"})}

_WORDS: Final = ("zone", "offset", "utc", "gmt")
_ENCODED: Final = tuple(map(str.encode, _WORDS))
# A field of half a time in lower case, which UPS prints in every alert: it says neither.
_HALF_TIME: Final = re.compile(rb'"gmt[a-z]*"\s*:\s*"\d{0,10}"')
_UTC_NAME: Final = re.compile(r"utc|gmt", re.IGNORECASE)
_SIGNED: Final = re.compile(r"(?:UTC|GMT)?\s*[+-]\d|(?:UTC|GMT|Z)\Z", re.IGNORECASE)
_CORRECTED: Final = frozenset({TzSource.CARRIER_DEFAULT, TzSource.ASSUMED_UTC, TzSource.LOCATION})
_COMPARED: Final = _CORRECTED | {TzSource.EXPLICIT, TzSource.PAIR}
OTHERWISE: Final = "a zone or an instant is printed beside a time that says another"
# Scans compared for each printed time, and times for each object: a message may print either
# thousands of times.
COMPARED_MAX: Final = 16

_ByCodes = dict[frozenset[str | None], list[int]]


class _Said(NamedTuple):
    """The content of a field: the zone, or the instant, of the time beside it."""

    zone: tzinfo | None
    instant: datetime | None
    printed: str


class _Times:
    """The readings that print a time of day, by that time and their codes."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self._by_time: dict[str, _ByCodes] = {}
        # of a time that may be printed in two fields, the second by the first
        self._rests: dict[str, set[str]] = {}
        for index, reading in enumerate(readings):
            time = reading.time
            if time.tz_source in _COMPARED and time.precision is not TimePrecision.DAY:
                by_codes = self._by_time.setdefault(time.printed, {})
                by_codes.setdefault(_codes(reading), []).append(index)
                for space in re.finditer(" ", time.printed):
                    rests = self._rests.setdefault(time.printed[: space.start()], set())
                    rests.add(time.printed[space.end() :])

    def printed_in(
        self, scalars: Mapping[str, str], values: frozenset[str]
    ) -> Iterator[tuple[str, _ByCodes]]:
        """Yield each field of an object that has a time, or the first half of one."""
        for name, value in scalars.items():
            if (by_codes := self._by_time.get(value)) is not None:
                yield name, by_codes
            # no search for each pair of fields: an object may have thousands
            elif value in self._rests and (rests := self._rests[value] & values):
                rest = next(other for other in scalars.values() if other in rests)
                yield name, self._by_time[f"{value} {rest}"]


def with_printed_zones(
    readings: Sequence[Reading], body: bytes, carrier: str, rejections: Rejections
) -> Sequence[Reading]:
    if not readings or not _may_name_zone(body):
        return readings
    found, times, untrue = list(readings), None, UNTRUE.get(carrier, ())
    for pointer, members in _objects(body):
        all_said = [
            (name, said)
            for name, value in members.items()
            if _names_zone(name)
            # most fields of such names hold half a time, which says neither
            and (said := _said(name, text(value) or "")) is not None
            and squashed(name) not in untrue
        ]
        if not all_said:
            continue
        times = times or _Times(readings)
        scalars = {name: trimmed for name, value in members.items() if (trimmed := text(value))}
        values = frozenset(scalars.values())
        printed = [*islice(times.printed_in(scalars, values), COMPARED_MAX)]
        for name, said in all_said:
            indexes = _indexes_of(printed, values, name)
            if not indexes or any(_agrees(found[index].time, said) for index in indexes):
                continue
            corrected = _corrected(found[indexes[0]].time, said) if len(indexes) == 1 else None
            if corrected is None:
                rejections.add(f"{pointer}/{name}", OTHERWISE)
            else:
                found[indexes[0]] = replace(found[indexes[0]], time=corrected)
    return found


def _may_name_zone(body: bytes) -> bool:
    # without the zero bytes of a text in UTF-16
    printed = body.replace(b"\0", b"").lower()
    return _has_word(printed) and _has_word(_HALF_TIME.sub(b"", printed))


def _has_word(printed: bytes) -> bool:
    return any(map(printed.__contains__, _ENCODED))


def _names_zone(names: str) -> bool:
    return any(map(names.lower().__contains__, _WORDS))


def _indexes_of(
    times: Sequence[tuple[str, _ByCodes]], values: frozenset[str], zone_name: str
) -> Sequence[int]:
    """Return the readings with one of the times; its field's name has to fit that of an instant.

    Of several, the reading with its codes there too, if it is unique, else the first
    COMPARED_MAX.
    """
    kind = squashed(_UTC_NAME.sub("", zone_name)) if _UTC_NAME.search(zone_name) else ""
    for name, by_codes in times:
        if name == zone_name and not kind:
            continue
        if kind in squashed(name) or squashed(name) in kind:
            coded = [
                index for codes in by_codes if codes <= values for index in by_codes[codes][:2]
            ]
            if len(coded) == 1:
                return coded
            return list(islice(chain.from_iterable(by_codes.values()), COMPARED_MAX))
    return ()


def _codes(reading: Reading) -> frozenset[str | None]:
    return frozenset({reading.raw.type, reading.raw.code, *reading.raw.further} - {None})


def _said(name: str, value: str) -> _Said | None:
    if _SIGNED.match(value) and (offset := read_offset(value.strip())) is not None:
        return _Said(timezone(offset), None, value)
    if "/" in value and (zone := zone_named(value)) is not None:
        return _Said(zone, None, value)
    wall = ISO.read(value) if _UTC_NAME.search(name) and len(value) > len("2026-01-01T") else None
    if wall is None or wall.is_sentinel:
        return None
    return _Said(None, wall.local.replace(tzinfo=UTC) - (wall.offset or timedelta()), value)


def _agrees(time: PrintedTime, said: _Said) -> bool:
    if said.instant is not None:
        apart = abs(time.instant - said.instant)
        # USPS prints the local date beside the time in UTC, after midnight too
        return min(apart, abs(apart - timedelta(days=1))) <= PAIR_TOLERANCE
    # a time with an offset of its own is an instant, whichever zone it is shown in
    return time.tz_source not in _CORRECTED or time.instant.utcoffset() == _offset(time, said)


def _offset(time: PrintedTime, said: _Said) -> timedelta | None:
    return time.instant.astimezone(said.zone).utcoffset() if said.zone else None


def _corrected(time: PrintedTime, said: _Said) -> PrintedTime | None:
    """Return the time in the zone that is printed; None where it contradicts an offset
    that the time itself has.
    """
    if time.tz_source not in _CORRECTED:
        return None
    local = datetime.fromisoformat(time.identity) if "T" in time.identity else None
    if local is None:
        return None
    if (printed := _offset(time, said)) is not None:
        return at_offset(time, local, printed, TzSource.EXPLICIT, zone=said.printed)
    offset = offset_between(local, said.instant.replace(tzinfo=None)) if said.instant else None
    return None if offset is None else at_offset(time, local, offset, TzSource.PAIR)


def _objects(body: bytes) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield each object of the body that has a field of a zone, with its members."""
    for content in form_fields(body).values() or (body,):
        if is_xml(content):
            yield from _of_xml(read_xml(content).root)
            continue
        for value in json_values(content):
            yield from _of_json(value, "")


def _of_json(value: object, pointer: str) -> Iterator[tuple[str, dict[str, object]]]:
    members: Iterable[tuple[Any, Any]] = ()
    if type(value) is dict:
        if _names_zone("\n".join(value)):
            yield pointer, value
        members = value.items()
    elif type(value) is list:
        members = enumerate(value)
    for name, each in members:
        if type(each) in (dict, list):
            yield from _of_json(each, f"{pointer}/{name}")


def _of_xml(root: etree._Element) -> Iterator[tuple[str, dict[str, str]]]:
    for element in root.iter():
        scalars = {str(name): str(each) for name, each in element.attrib.items()}
        scalars |= {str(each.tag): each.text for each in element if each.text}
        if _names_zone("\n".join(scalars)):
            yield str(element.tag), scalars
