"""`python -m tests.code_lists`: how much of the carriers' public lists of codes their tables know.

A list `events/carriers/lists/<table>.csv` belongs to the table `events/carriers/<table>.csv` and
has its key columns, then what a document says of the code. 1 where a code of a list is neither in
the table nor waived with a reason, or where a list is not in order.
"""

import argparse
import csv
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

CARRIERS: Final = Path(__file__).parents[1] / "events" / "carriers"
LISTS: Final = "lists"
SOURCES: Final = "sources.csv"
EVIDENCE: Final = ["meaning", "source", "date", "waived"]

_DATE: Final = re.compile(r"20\d\d(?:-[01]\d(?:-[0-3]\d)?)?")

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of the list of the same name by a table.

    `faults` say what is wrong, ready to print.
    """

    table: str
    mapped: int = 0
    waived: int = 0
    missing: int = 0
    faults: list[str] = field(default_factory=list)


def coverages(folder: Path = CARRIERS) -> list[Coverage]:
    """Return a row for each stored list, in the order of their names."""
    sources = {row[0] for row in _rows(folder / LISTS / SOURCES)[1:]}
    return [
        coverage(folder, path.name, sources)
        for path in sorted((folder / LISTS).glob("*.csv"))
        if path.name != SOURCES
    ]


def coverage(folder: Path, name: str, sources: set[str]) -> Coverage:
    """Return what the table `name` knows of its list."""
    if not (folder / name).is_file():
        return Coverage(name, faults=[f"there is no table events/carriers/{name}"])
    columns, mapped = keys(folder / name)
    header, *rows = _rows(folder / LISTS / name)
    if header != columns + EVIDENCE:
        return Coverage(name, faults=[f"its columns are {header}, not {columns + EVIDENCE}"])
    counts: Counter[str] = Counter()
    faults: list[str] = []
    seen: set[Key] = set()
    for row in rows:
        key, evidence = tuple(row[: len(columns)]), row[len(columns) :]
        faults += row_faults(
            key, evidence, known=key in mapped, repeated=key in seen, sources=sources
        )
        counts["mapped" if key in mapped else "waived" if any(evidence[3:]) else "missing"] += 1
        seen.add(key)
    return Coverage(name, counts["mapped"], counts["waived"], counts["missing"], faults)


def row_faults(
    key: Key, evidence: list[str], *, known: bool, repeated: bool, sources: set[str]
) -> list[str]:
    """Return what is wrong with one row of a list."""
    if len(evidence) != len(EVIDENCE):
        return [f"{shown(key)}: {len(evidence)} columns after the key, not {len(EVIDENCE)}"]
    meaning, source, date, waived = evidence
    wrong = {
        "neither in the table nor waived": not known and not waived.strip(),
        "in the table, and waived": known and bool(waived),
        "stands twice": repeated,
        "has no meaning": not meaning.strip(),
        f"its source {source!r} is not in {SOURCES}": source not in sources,
        f"{date!r} is no year, month or day": _DATE.fullmatch(date) is None,
    }
    return [f"{shown(key)} ({meaning}): {fault}" for fault, holds in wrong.items() if holds]


def shown(key: Key) -> str:
    """Format a key for humans."""
    return "/".join(part for part in key if part)


def keys(path: Path) -> tuple[list[str], set[Key]]:
    """Return the key columns of a table, and its keys."""
    header, *rows = _rows(path)
    width = header.index("kind")
    return header[:width], {tuple(row[:width]) for row in rows}


def without_list(folder: Path = CARRIERS) -> list[str]:
    """Return the tables for which no list is stored."""
    tables = (
        path for path in sorted(folder.glob("*.csv")) if not (folder / LISTS / path.name).is_file()
    )
    return [path.stem for path in tables]


def main() -> int:
    """Print the coverage of each list, then what is wrong on standard error."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.code_lists",
        description="The code tables against the carriers' public lists.",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=CARRIERS,
        help="where tables and lists are (default: events/carriers)",
    )
    folder = parser.parse_args().folder
    found = coverages(folder)
    for row in found:
        total, covered = row.mapped + row.waived + row.missing, row.mapped + row.waived
        sys.stdout.write(
            f"{row.table.removesuffix('.csv'):<24}{total:>6} codes{row.mapped:>6}"
            f" mapped{row.waived:>5} waived"
        )
        sys.stdout.write(f"{100 * covered / total if total else 0:>8.1f} %\n")
    sys.stdout.write(f"no list: {', '.join(without_list(folder))}\n")
    sys.stderr.write(
        "".join(f"{LISTS}/{row.table}: {fault}\n" for row in found for fault in row.faults)
    )
    return 1 if any(row.faults for row in found) else 0


def _rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines))


if __name__ == "__main__":
    sys.exit(main())
