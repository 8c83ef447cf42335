"""`python -m tests.corpus_shares [--write]`: of the payloads of all corpora, what is right,
reported and silently wrong.

Right: everything that is asserted of an event is read so. Reported: it is not, but a person is
asked: the message is refused, a member of it rejected, the code unmapped or read by its category
alone. Silent: anything else. `assumed` counts events whose offset nothing says. `--write` puts the
table into `docs/carrier-shares.md`, which `tests/test_corpus_shares.py` compares.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from events.carriers import CARRIERS
from events.errors import UnreadableMessageError
from events.event import Normalized, Reading
from events.vocabulary import Kind, TzSource
from tests.corpus_table import differences
from tests.events.carriers.test_corpus import (
    CORPUS,
    NO_CORPUS,
    WRONG,
    is_judged,
    one_per_number,
    read,
)

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


def documents() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the judged payloads of all corpora that are there, each with its file."""
    for corpus in CORPORA:
        index = corpus / "expected.json"
        for document in json.loads(index.read_text("utf-8")) if index.is_file() else ():
            document.setdefault("note", None)
            is_asked_for = document["carrier"] in CARRIERS and not document.get(PAGE_OF_CARRIER)
            if is_asked_for and is_judged(document) and document["path"] not in WRONG:
                document["events"] = [
                    one for event in document["events"] for one in one_per_number(_UNSTATED | event)
                ]
                yield corpus / document["path"], document


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


def stated() -> dict[str, tuple[int, int, int]]:
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
    if sys.argv[1:] == ["--write"]:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}{printed}{END}{rest.partition(END)[2]}", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
