"""Meanings of a carrier's codes in English, by the carrier's own public list of them. Pure."""

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from events.code_tables import printed_row, wider_rows
from events.event import Raw

_MEANING: Final = "meaning"


def code_meaning(carrier_id: str, raw: Raw, text: str | None) -> str | None:
    """Return the list's words for a code; None where no list names it, or not in Latin letters."""
    for words in (text, None):
        row = printed_row(carrier_id, raw, words)
        if row is not None:
            listed = _listed(row.table)
            for key in (each.key for each in wider_rows(carrier_id, row)):
                if meaning := listed.get(_folded(key)):
                    return meaning
    return None


@cache
def _listed(table: str) -> Mapping[tuple[str, ...], str]:
    """Read a list; its keys are those of the table of the same name."""
    file = files("events.carriers") / "lists" / table
    if not file.is_file():
        return {}
    header, *rows = csv.reader(file.read_text("utf-8").splitlines())
    width = header.index(_MEANING)
    return {_folded(row[:width]): row[width] for row in rows if row[width].isascii()}


def _folded(key: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(cell.casefold() for cell in key)
