"""Meanings of a carrier's codes, read from a table next to the carrier's module.

The columns before `kind` are the key, in their order; an empty `kind` is a scan. A code without a
row has no meaning: meanings are never guessed.
"""

import csv
from collections.abc import Callable, Collection, Mapping
from importlib.resources import files
from typing import Final, NamedTuple

from events.clear_part import looks_like_code
from events.event import Raw
from events.vocabulary import Kind, Reason, Status


class Meaning(NamedTuple):
    """Meaning of a code. `status` is None for everything but a scan."""

    kind: Kind
    status: Status | None = None
    reason: Reason | None = None
    by_category: bool = False
    """The code itself is not known: the category that the carrier documents with it is."""

    def of_category(self) -> "Meaning":
        """Return the meaning for a code of which only the category is known."""
        return self._replace(by_category=True)


UNMAPPED: Final = Meaning(Kind.UNMAPPED)

Table = Mapping[tuple[str, ...], Meaning]


def finest(*levels: tuple[str | None, Meaning | None]) -> Meaning:
    """Return the meaning of the finest known field.

    `levels`: each as printed and with its meaning, the finest first. A coarser field is
    believed only where every finer printed field is unknown. Its reading is `by_category` then,
    so that the finer code still raises its dead letter.
    """
    is_coarse = False
    for printed, known in levels:
        if printed and known is not None and known.kind is not Kind.UNMAPPED:
            return known.of_category() if is_coarse else known
        is_coarse = is_coarse or bool(printed)
    return UNMAPPED


ON_THE_WAY: Final = frozenset(
    {Status.PICKED_UP, Status.IN_TRANSIT, Status.AVAILABLE_FOR_PICKUP, Status.OUT_FOR_DELIVERY}
)


def on_the_way_back(meaning: Meaning, *, on_the_way: Collection[Status] = ON_THE_WAY) -> Meaning:
    """Read a scan of a parcel on its way back: delivered is returned, movement is returning."""
    if meaning.status is Status.DELIVERED:
        return Meaning(Kind.SCAN, Status.RETURNED)
    return Meaning(Kind.SCAN, Status.RETURNING) if meaning.status in on_the_way else meaning


def by_code(table: Table) -> Callable[[Raw], Meaning]:
    """Return a reader that looks up the code alone, where that is definite."""

    def meaning(raw: Raw) -> Meaning:
        return table.get((raw.code or "",), UNMAPPED)

    return meaning


def codes_without_text(table: Table) -> dict[str, Meaning]:
    """Return, from a table by (code, text), the codes that mean the same whatever
    text accompanies them.
    """
    worded = {code for code, text in table if text}
    return {
        code: meaning for (code, text), meaning in table.items() if not text and code not in worded
    }


def texts_of(*tables: Table) -> frozenset[str]:
    """Return the parts of keys that do not look like codes."""
    return frozenset(
        part for table in tables for key in table for part in key if not looks_like_code(part)
    )


def meanings(name: str) -> dict[tuple[str, ...], Meaning]:
    """Read the table `events/carriers/<name>`, by its key columns as they are written there.

    Raises ValueError for a duplicate key and for an unknown word: a defect of the table.
    """
    rows = list(csv.reader(files("events.carriers").joinpath(name).read_text("utf-8").splitlines()))
    width = rows[0].index("kind")
    table: dict[tuple[str, ...], Meaning] = {}
    for row in rows[1:]:
        key = tuple(row[:width])
        if key in table:
            raise ValueError(f"{name}: the key of row {row} stands twice")
        table[key] = _meaning(*row[width : width + 3])
    return table


def _meaning(kind: str, status: str, reason: str) -> Meaning:
    found = Meaning(
        Kind(kind) if kind else Kind.SCAN,
        Status(status) if status else None,
        Reason(reason) if reason else None,
    )
    if (found.kind is Kind.SCAN) != (found.status is not None):
        raise ValueError(f"a {found.kind} with the status {status!r}")
    return found
