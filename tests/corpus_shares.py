"""`python -m tests.corpus_shares [CARRIER ... | --write]`: of the payloads of all corpora, what is
right, reported and silently wrong; of the carriers, each event that is not right, and why.

Right: everything that is asserted of an event is read so. Reported: it is not, but a person is
asked: the message is refused, a member of it rejected, the code unmapped or read by its category
alone. Silent: anything else. `assumed` counts events whose offset nothing says. `--write` puts the
table into `docs/carrier-shares.md`, which `tests/events/carriers/test_corpus.py` compares.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from events.carriers import CARRIERS
from events.errors import UnreadableMessageError
from events.event import NOWHERE, Normalized, Reading
from events.identity.ids import carrier_code
from events.spelling import normalize_number
from events.vocabulary import Kind, TzSource

RECEIVED_AT: Final = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
CORPUS: Final = Path(
    os.environ.get("STATESVC_CORPUS") or Path(__file__).parents[2] / "shared" / "corpus"
)
WRONG: Final = {
    "epcis/xml_hash_id_1_with_doctype.xml": (
        "its one event is about three things, so it is read of each"
    ),
    "epcis/xml_hash_id_4.xml": "its one event is about three things, so it is read of each",
}
"""Payloads whose expectation is wrong, and why."""

NOT_JUDGED: Final = "not judged"
"""Beginning of the note of a payload that only has to be read."""

NO_CORPUS: Final = "the corpus is absent: set STATESVC_CORPUS to its folder"
CORPORA: Final = (
    CORPUS,
    *(CORPUS.with_name(name) for name in ("corpus-3", "corpus-4")),
    CORPUS.with_name("corpus-4") / "earlier",
)
PAGE: Final = Path(__file__).parents[1] / "docs" / "carrier-shares.md"
BEGIN, END = "<!-- shares -->\n", "<!-- shares end -->\n"
PAGE_OF_CARRIER: Final = "page"
"""Mark of payloads that nobody pushes: a carrier's own website answers so."""
_UNSTATED: Final[dict[str, Any]] = dict.fromkeys(
    ("tracking_number", "raw_code", "status", "occurred_at_raw")
)
STATED: Final = frozenset({TzSource.EXPLICIT})
LOCAL: Final = frozenset({TzSource.LOCATION, TzSource.CARRIER_DEFAULT})
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
class Shares:
    """Events of one carrier; `assumed` and `unmapped` are of those that were read."""

    payloads: int = 0
    events: int = 0
    right: int = 0
    reported: int = 0
    silent: int = 0
    assumed: int = 0
    unmapped: int = 0

    def add(self, other: "Shares") -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


def payloads(corpus: Path) -> Iterator[dict[str, Any]]:
    """Yield the payloads of a corpus, each with what is expected of it."""
    index = corpus / "expected.json"
    for document in json.loads(index.read_text("utf-8")) if index.is_file() else ():
        if document["carrier"] in CARRIERS:
            document["events"] = [
                one for event in document["events"] for one in one_per_number(_UNSTATED | event)
            ]
            yield document


def documents() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the judged payloads of all corpora that are there, each with its file."""
    for corpus in CORPORA:
        for document in payloads(corpus):
            if is_judged(document) and not document.get(PAGE_OF_CARRIER):
                yield corpus / document["path"], document


def one_per_number(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield an event of several shipments for each.

    An absent part of a code is printed as `None` by some expectations.
    """
    code = event["raw_code"] and event["raw_code"].removesuffix("/None")
    for number in (event["tracking_number"], *event.get("also_numbers", ())):
        yield event | {"tracking_number": number, "raw_code": code}


def is_judged(document: dict[str, Any]) -> bool:
    """Return whether its events are stated, and rightly; the others only have to be read."""
    note = document.get("note") or ""
    return not note.startswith(NOT_JUDGED) and document["path"] not in WRONG


def read(carrier_id: str, body: bytes) -> Normalized:
    carrier = CARRIERS[carrier_id]
    return carrier.normalizers[carrier.stable](body, RECEIVED_AT)


def digits(printed: str) -> str:
    return "".join(character for character in printed if character.isdigit())


def times_as_printed(expected: str) -> set[str]:
    """Return both times of `20240423 091519 local; 20240423 131519 GMT`.

    A `local-05:00` names the offset that the other half implies; what stands after `off` is an
    offset in a field of its own.

    """
    parts = (
        part.split(" local")[0].split(" off ")[0].split(" [")[0].split(" (")[0]
        for part in expected.split(";")
    )
    return {digits(part) for part in parts}


def stated(reading: Reading, expected: dict[str, Any]) -> dict[str, object]:
    """Return what the reading says about everything that the expectation asserts, in
    the expectation's words.
    """
    found: dict[str, object] = {
        "discriminator": reading.discriminator if "discriminator" in expected else None,
        "piece": reading.piece if "piece" in expected else None,
        "signed_by": reading.signed_by if "signed_by" in expected else None,
    }
    if expected["tracking_number"] is not None or expected.get("number_from_request"):
        found["tracking_number"] = (
            None if reading.tracking_number is None else normalize_number(reading.tracking_number)
        )
    if expected["raw_code"] is not None:
        found["raw_code"] = carrier_code(reading.raw)
    if expected["status"] is not None:
        found["status"] = (
            reading.status.value
            if reading.kind is Kind.SCAN and reading.status is not None
            else reading.kind.value
        )
    return found


def asserted(expected: dict[str, Any]) -> dict[str, object]:
    number = None if expected.get("number_from_request") else expected["tracking_number"]
    found: dict[str, object] = {
        "discriminator": expected.get("discriminator"),
        "piece": expected.get("piece"),
        "signed_by": expected.get("signed_by"),
    }
    if number is not None or expected.get("number_from_request"):
        found["tracking_number"] = None if number is None else normalize_number(number)
    return found | {
        name: expected[name] for name in ("raw_code", "status") if expected[name] is not None
    }


def shares() -> dict[str, Shares]:
    """Return the shares by carrier, in the order of their names."""
    found: dict[str, Shares] = {}
    for path, document in documents():
        found.setdefault(document["carrier"], Shares()).add(
            shares_of(document["carrier"], path.read_bytes(), document["events"])
        )
    return dict(sorted(found.items()))


def shares_of(carrier_id: str, body: bytes, expected: list[dict[str, Any]]) -> Shares:
    """Return the shares of one payload."""
    try:
        normalized = read(carrier_id, body)
    except UnreadableMessageError:
        return Shares(payloads=1, events=len(expected), reported=len(expected))
    readings = normalized.readings
    found = Shares(payloads=1, events=len(expected))
    for reading, event in pairs(readings, expected):
        verdict = _verdict(normalized, reading, event)
        setattr(found, verdict, getattr(found, verdict) + 1)
    if not normalized.rejections:
        found.silent += max(0, len(readings) - len(expected))
    found.assumed = sum(reading.time.tz_source is TzSource.ASSUMED_UTC for reading in readings)
    found.unmapped = sum(reading.kind is Kind.UNMAPPED for reading in readings)
    return found


def pairs(
    readings: Sequence[Reading], expected: Sequence[dict[str, Any]]
) -> Iterator[tuple[Reading | None, dict[str, Any]]]:
    """Yield each expected event with the reading that fits it; those without one get the
    others, in their order.
    """
    left, unmatched = list(readings), []
    for event in expected:
        fitting = next((each for each in left if not any(differences(each, event))), None)
        if fitting is None:
            unmatched.append(event)
        else:
            left.remove(fitting)
            yield fitting, event
    yield from zip_longest(left[: len(unmatched)], unmatched)


def _verdict(normalized: Normalized, reading: Reading | None, expected: dict[str, Any]) -> str:
    if reading is None:
        return "reported" if normalized.rejections else "silent"
    if not any(differences(reading, expected)):
        return "right"
    return "reported" if _asks(reading) or normalized.rejections else "silent"


def _asks(reading: Reading) -> bool:
    return reading.kind is Kind.UNMAPPED or reading.by_category


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


def wrong_events(carrier_id: str) -> Iterator[str]:
    """Yield a line for each event of a carrier that is read otherwise than asserted."""
    for path, document in documents():
        if document["carrier"] != carrier_id:
            continue
        try:
            readings = read(carrier_id, path.read_bytes()).readings
        except UnreadableMessageError as error:
            yield f"{path}: not read, {error}"
            continue
        for reading, event in pairs(readings, document["events"]):
            if told := ["not read"] if reading is None else list(differences(reading, event)):
                yield f"{path}: {'; '.join(told)}"


def table(found: dict[str, Shares]) -> str:
    """Format the table in Markdown, the sum first."""
    total = Shares()
    for each in found.values():
        total.add(each)
    head = (
        "| carrier | payloads | events | right | reported | silent | assumed zone | unmapped"
        " |\n|---|---:|---:|---:|---:|---:|---:|---:|\n"
    )
    return head + "".join(_row(name, each) for name, each in {"**all**": total, **found}.items())


def _row(name: str, of: Shares) -> str:
    percent = f" ({of.right / of.events:.1%})" if of.events and of.right != of.events else ""
    return (
        f"| {name} | {of.payloads} | {of.events} | {of.right}{percent} | {of.reported} |"
        f" {of.silent} | {of.assumed} | {of.unmapped} |\n"
    )


def printed_shares() -> dict[str, tuple[int, int, int]]:
    """Return the events, right and silent ones of each carrier, as the page says."""
    rows = PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0].splitlines()[2:]
    cells = ([cell.strip() for cell in row.strip("|").split("|")] for row in rows)
    return {
        name.strip("*"): (int(events), int(right.split()[0]), int(silent))
        for name, _, events, right, _, silent, *_ in cells
    }


def main() -> int:
    """Print the shares; return 2 where a corpus is absent."""
    if not all((corpus / "expected.json").is_file() for corpus in CORPORA):
        sys.stderr.write(f"{NO_CORPUS}\n")
        return 2
    printed = table(shares())
    sys.stdout.write(printed)
    for carrier_id in CARRIERS.keys() & set(sys.argv[1:]):
        sys.stdout.writelines(f"{told}\n" for told in wrong_events(carrier_id))
    if sys.argv[1:] == ["--write"]:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}{printed}{END}{rest.partition(END)[2]}", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
