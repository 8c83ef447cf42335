"""`python -m tests.corpus_table [CARRIER ...]`: what each carrier's normalizer makes of the corpus,
beside what is expected of it.

An event is right where its number, code, status, place and time (its digits, instant, precision and
where its offset comes from) are; what the corpus does not assert is not compared. `reread` counts
the events that can be read again without their message (renormalize). A second table shows how many
events have a time whose offset nothing says (`assumed_utc`), and how many a code that no table
knows (`unmapped`), and how many it were before.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from events.carriers import CARRIERS
from events.errors import UnreadableMessageError
from events.event import NOWHERE, Reading
from events.vocabulary import Kind, TzSource
from tests.events.carriers.test_corpus import (
    CORPUS,
    NO_CORPUS,
    WRONG,
    asserted,
    digits,
    is_judged,
    one_per_number,
    read,
    stated,
    times_as_printed,
)

STATED: Final = frozenset({TzSource.EXPLICIT})
LOCAL: Final = frozenset({TzSource.LOCATION, TzSource.CARRIER_DEFAULT})
MALFORMED: Final = "_synthetic_malformed"
SHARE_MAX: Final = 0.01
"""Share of the events that are read, and of those among them with a place, that may have an assumed
offset, or an unmapped code.
"""
BEFORE: Final = {
    "17track": (1, 0),
    "aftership": (5, 0),
    "dhl_express": (0, 3),
    "dhl_poland": (0, 2),
    "dhl_unified": (15, 2),
    "epcis": (0, 1),
    "geodis": (0, 1),
    "landmark": (18, 0),
    "seko": (4, 0),
    "shippo": (1, 0),
    "smartkargo": (1, 1),
    "tnt": (16, 0),
    "ups": (5, 1),
}
"""Events with an assumed offset and unmapped ones of the same payloads, as commit 0c151c7 read
them: 66 and 11 of 901.
"""
BEFORE_READ: Final = 901

SOURCES: Final = (
    ("utc (claimed)", LOCAL),
    ("offset", STATED),
    ("utc", STATED),
    ("epoch-ms", STATED),
    ("iana", STATED),
    ("tz-abbrev", STATED),
    ("local+gmt", frozenset({TzSource.PAIR})),
    ("epoch+utc-local", frozenset({TzSource.PAIR})),
    ("local", LOCAL),
    ("ist", LOCAL),
)
"""Beginnings of `tz`, and where the offset may come from then."""
_WORD: Final = re.compile(r"\w+")


@dataclass(slots=True)
class Row:
    """Results of one carrier's payloads. `wrong` says which event of which payload, and why.

    What was read beyond the expected events is wrong as well, so right and wrong may
    be more than the events.
    """

    carrier_id: str
    payloads: int = 0
    events: int = 0
    right: int = 0
    reread: int = 0
    """Events that their raw fields alone explain, without the message."""
    read: int = 0
    placed: int = 0
    """Events with any place."""
    assumed: int = 0
    assumed_of_placed: int = 0
    unmapped: int = 0
    wrong: list[str] = field(default_factory=list)
    note: str = ""


def rows(documents: list[dict[str, Any]], chosen: set[str]) -> list[Row]:
    """Return a row for each carrier of the corpus, in the order of their names."""
    found: dict[str, Row] = {}
    for document in documents:
        carrier_id = document["carrier"]
        if chosen and carrier_id not in chosen:
            continue
        row = found.setdefault(carrier_id, Row(carrier_id))
        row.payloads += 1
        if document["path"] in WRONG:
            row.note = (
                f"not counted, its expectation is wrong: {document['path']},"
                f" {WRONG[document['path']]}"
            )
            continue
        document["events"] = [one for event in document["events"] for one in one_per_number(event)]
        row.events += len(document["events"])
        if carrier_id in CARRIERS:
            told = list(wrongs(document))
            count_readings(row, document)
            row.right += len(document["events"]) - sum(is_expected for is_expected, _ in told)
            row.wrong += [f"{document['path']}{line}" for _, line in told]
        else:
            row.note = "no normalizer"
            row.wrong += [
                f"{document['path']} event {number}: not read"
                for number, _ in enumerate(document["events"])
            ]
    return [row for _, row in sorted(found.items())]


def wrongs(document: dict[str, Any]) -> Iterator[tuple[bool, str]]:
    """Yield what is wrong with the reading of a payload.

    Whether it is about an expected event, and a line with what was said and expected.
    """
    expectations = document["events"]
    try:
        normalized = read(document["carrier"], (CORPUS / document["path"]).read_bytes())
    except UnreadableMessageError as error:
        yield from (
            (True, f" event {number}: not read, {error}") for number, _ in enumerate(expectations)
        )
        if not is_judged(document):
            yield False, f": not read, {error}"
        return
    if not is_judged(document):
        return
    for number, expected in enumerate(expectations):
        reading = normalized.readings[number] if number < len(normalized.readings) else None
        if told := ["not read"] if reading is None else list(differences(reading, expected)):
            yield True, f" event {number}: {'; '.join(told)}"
    for number in range(len(expectations), len(normalized.readings)):
        yield False, f" event {number}: read, but not expected"
    yield from (
        (False, f"{rejection.pointer}: rejected, {rejection.why}")
        for rejection in normalized.rejections
    )


def count_readings(row: Row, document: dict[str, Any]) -> None:
    """Add up the readings of a payload, whatever is expected of them."""
    try:
        normalized = read(document["carrier"], (CORPUS / document["path"]).read_bytes())
    except UnreadableMessageError:
        return
    for reading in normalized.readings:
        is_assumed, is_placed = (
            reading.time.tz_source is TzSource.ASSUMED_UTC,
            reading.place != NOWHERE,
        )
        row.read += 1
        row.reread += CARRIERS[row.carrier_id].reread(reading.raw) is not None
        row.placed += is_placed
        row.assumed += is_assumed
        row.assumed_of_placed += is_assumed and is_placed
        row.unmapped += reading.kind is Kind.UNMAPPED


def differences(reading: Reading, expected: dict[str, Any]) -> Iterator[str]:
    """Yield where a reading says something else than what is asserted."""
    found, wanted = stated(reading, expected), asserted(expected)
    yield from (
        f"{name} {found.get(name)!r}, expected {wanted[name]!r}"
        for name in wanted
        if found.get(name) != wanted[name]
    )
    printed, instant, precision = (
        expected["occurred_at_raw"],
        expected.get("occurred_at"),
        expected.get("time_precision"),
    )
    is_instant = instant is not None and reading.time.instant == datetime.fromisoformat(instant)
    if (
        printed is not None
        and not is_instant
        and digits(reading.time.printed) not in times_as_printed(printed)
    ):
        yield f"time {reading.time.printed!r}, expected {printed!r}"
    if instant is not None and reading.time.instant != datetime.fromisoformat(instant):
        yield f"instant {reading.time.instant.isoformat()}, expected {instant}"
    if precision is not None and reading.time.precision != precision:
        yield f"precision {reading.time.precision}, expected {precision}"
    sources = next(
        (
            sources
            for begin, sources in SOURCES
            if (expected.get("tz") or "").casefold().startswith(begin)
        ),
        None,
    )
    if (
        sources is not None
        and printed
        and _names_zone(reading, printed)
        and reading.time.tz_source not in sources
    ):
        yield f"zone by {reading.time.tz_source}, expected {expected['tz']}"
    yield from _misplaced(reading, expected.get("location"))


def _names_zone(reading: Reading, printed: str) -> bool:
    """Return whether a reading names its zone: one that prints offsets may have scans without, and
    a date alone has none to find.
    """
    return reading.time.tz_source is not TzSource.RECEIVED and (
        reading.time.zone is not None or "T00:00:00" not in printed
    )


def _misplaced(reading: Reading, location: str | None) -> Iterator[str]:
    """Compare words: the corpus prints a place on one line, with more or less in it than a
    normalizer keeps. Coordinates are no place.
    """
    if not location or location.startswith("lat "):
        return
    place, words = reading.place, set(_WORD.findall(location.casefold()))
    # an expectation of a city alone says nothing of its region
    parts = (place.city, place.region if "," in location or place.city is None else None)
    said = {word for part in parts for word in _WORD.findall((part or "").casefold())}
    if place == NOWHERE or not (said <= words or (place.facility or "").casefold() in words):
        yield f"place {place}, expected {location!r}"


def refusals() -> Iterator[tuple[str, str]]:
    """Yield each hostile body, and what came of it when every carrier read it."""
    for path in sorted((CORPUS / MALFORMED).iterdir()):
        refused = broken = 0
        for carrier_id in CARRIERS:
            try:
                read(carrier_id, path.read_bytes())
            except UnreadableMessageError:
                refused += 1
            except Exception:  # noqa: BLE001 - counted
                broken += 1
        told = f"read by {len(CARRIERS) - refused - broken}, refused by {refused}"
        yield path.name, told + (f", BROKE {broken}" if broken else "")


def main() -> int:
    """Print the table; return 1 where anything is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.corpus_table", description="Every carrier against the corpus."
    )
    parser.add_argument(
        "carriers", nargs="*", metavar="CARRIER", help="default: all, and the hostile bodies"
    )
    chosen = set(parser.parse_args().carriers)
    if not (CORPUS / "expected.json").is_file():
        sys.stderr.write(f"{NO_CORPUS}\n")
        return 2
    table = rows(json.loads((CORPUS / "expected.json").read_text("utf-8")), chosen)
    sys.stdout.write(
        f"{'carrier':<18}{'payloads':>9}{'events':>8}{'right':>8}{'wrong':>8}{'reread':>8}\n"
    )
    for row in table:
        counts = line(
            row.carrier_id, row.payloads, row.events, row.right, len(row.wrong), row.reread
        )
        sys.stdout.write(counts + (f"  {row.note}" if row.note else "") + "\n")
        sys.stdout.writelines(f"    {told}\n" for told in row.wrong if not row.note)
    totals = zip(
        *((row.payloads, row.events, row.right, len(row.wrong), row.reread) for row in table),
        strict=True,
    )
    sys.stdout.write(
        line("all", *map(sum, totals)) + "\n" if table else "no such carrier in the corpus\n"
    )
    excessive = list(shares(table, complete=not chosen))
    hostile = [] if chosen else list(refusals())
    sys.stdout.writelines(f"{name:<42}{told}\n" for name, told in hostile)
    return (
        1
        if excessive
        or any(row.wrong for row in table)
        or any("BROKE" in told for _, told in hostile)
        else 0
    )


def shares(table: list[Row], *, complete: bool) -> Iterator[str]:
    """Print how many offsets are assumed and how many codes unmapped, before and now.

    Yields which share of all is too great.
    """
    sys.stdout.write(
        f"\n{'carrier':<18}{'read':>9}{'assumed_utc before':>20}{'now':>6}{'unmapped before':>17}"
        f"{'now':>6}\n"
    )
    for row in table:
        assumed, unmapped = BEFORE.get(row.carrier_id, (0, 0))
        if assumed or unmapped or row.assumed or row.unmapped:
            sys.stdout.write(
                f"{row.carrier_id:<18}{row.read:>9,}{assumed:>20,}{row.assumed:>6,}{unmapped:>17,}"
                f"{row.unmapped:>6,}\n"
            )
    if not complete:
        return
    read_now, placed = sum(row.read for row in table), sum(row.placed for row in table)
    now = sum(row.assumed for row in table), sum(row.unmapped for row in table)
    before = tuple(map(sum, zip(*BEFORE.values(), strict=True)))
    of_placed = sum(row.assumed_of_placed for row in table)
    for name, count, was in zip(("assumed_utc", "unmapped"), now, before, strict=True):
        sys.stdout.write(
            f"{name}: {count / read_now:.2%} of {read_now:,} events, before {was / BEFORE_READ:.2%}"
            f" of {BEFORE_READ:,}\n"
        )
        if count > read_now * SHARE_MAX:
            yield name
    sys.stdout.write(
        f"assumed_utc of events with a place: {of_placed / placed:.2%} of {placed:,}\n"
    )
    if of_placed > placed * SHARE_MAX:
        yield "assumed_utc of events with a place"


def line(name: str, payloads: int, *events: int) -> str:
    """Format one line of the table."""
    return f"{name:<18}{payloads:>9,}" + "".join(f"{count:>8,}" for count in events)


if __name__ == "__main__":
    sys.exit(main())
