"""Meanings of a carrier's codes in English, by the carrier's own public list of them. Pure."""

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

_ABOUT: Final = frozenset({"meaning", "source", "date", "waived"})
_PARTS: Final = ("type", "code", "reason")
_FILES: Final = {"17track": "seventeentrack"}


def code_meaning(carrier_id: str, raw: Mapping[str, Any]) -> str | None:
    """Return the list's words for a code; None where no list names it, or not in Latin letters."""
    key = tuple(str(raw.get(part) or "").upper() for part in _PARTS)
    listed = _listed(carrier_id)
    return listed.get(key) or listed.get(("", key[1], "")) or listed.get((key[0], key[1], ""))


@cache
def _listed(carrier_id: str) -> Mapping[tuple[str, ...], str]:
    file = files("events.carriers") / "lists" / f"{_FILES.get(carrier_id, carrier_id)}_codes.csv"
    if not file.is_file():
        return {}
    rows = list(csv.DictReader(file.read_text("utf-8").splitlines()))
    if not rows or set(rows[0]) - _ABOUT - set(_PARTS):
        return {}
    return {tuple((row.get(part) or "").upper() for part in _PARTS): row["meaning"] for row in rows if row["meaning"].isascii()}
