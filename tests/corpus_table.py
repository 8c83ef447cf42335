"""`python -m tests.corpus_table [CARRIER ...]`: what each carrier's normalizer makes of the corpus,
beside what is expected of it.

An event is right where its number, code, status, place and time (its digits, instant, precision and
where its offset comes from) are; what the corpus does not assert is not compared. `reread` counts
the events that can be read again without their message (renormalize).
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
from events.vocabulary import TzSource
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
            count_reread(row, document)
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


def count_reread(row: Row, document: dict[str, Any]) -> None:
    """Count the events of a payload that their raw fields alone explain."""
    try:
        normalized = read(document["carrier"], (CORPUS / document["path"]).read_bytes())
    except UnreadableMessageError:
        return
    carrier = CARRIERS[row.carrier_id]
    row.reread += sum(carrier.reread(each.raw) is not None for each in normalized.readings)


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
    hostile = [] if chosen else list(refusals())
    sys.stdout.writelines(f"{name:<42}{told}\n" for name, told in hostile)
    return (
        1 if any(row.wrong for row in table) or any("BROKE" in told for _, told in hostile) else 0
    )


def line(name: str, payloads: int, *events: int) -> str:
    """Format one line of the table."""
    return f"{name:<18}{payloads:>9,}" + "".join(f"{count:>8,}" for count in events)


if __name__ == "__main__":
    sys.exit(main())
