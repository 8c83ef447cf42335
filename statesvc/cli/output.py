"""Writing results: aligned columns and a progress bar for people, JSON for scripts."""

import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any, Final

import orjson

NO_PLACE: Final = (
    "A RESTORE FROM A BACKUP WOULD UNDO IT: no place outside the database is configured (STATESVC_CHECKPOINT_PUBLISH, or "
    "STATESVC_SEALER_CHECKPOINT_FILE); note it elsewhere, and repeat it after a restore"
)
"""Of what a tombstone would have to say."""
_BAR_WIDTH: Final = 40
_GAP: Final = "  "
_WRAPPED_WIDTH_MIN: Final = 12


def write_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as their widest cell; None is a dash. On a terminal the widest columns wrap, so that the table fits."""
    cells = [list(headings), *(["-" if value is None else str(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    if sys.stdout.isatty():
        widths = fitting(widths, shutil.get_terminal_size().columns)
    for row in cells:
        wrapped = [textwrap.wrap(cell, width) if len(cell) > width else [cell] for cell, width in zip(row, widths, strict=True)]
        for line in zip_longest(*wrapped, fillvalue=""):
            sys.stdout.write(_GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n")


def fitting(widths: Sequence[int], columns: int) -> list[int]:
    """The widths for a terminal of this many columns: the widest wrap, none below `_WRAPPED_WIDTH_MIN`."""
    fitted = list(widths)
    excess = sum(fitted) + len(_GAP) * (len(fitted) - 1) - columns
    while excess > 0 and max(fitted) > _WRAPPED_WIDTH_MIN:
        fitted[fitted.index(max(fitted))] -= 1
        excess -= 1
    return fitted


def write_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """One JSON document, indented."""
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode() + "\n")


def write_json_line(value: Mapping[str, Any]) -> None:
    """One JSON document on a line of its own, at once."""
    sys.stdout.write(orjson.dumps(value, default=str).decode() + "\n")
    sys.stdout.flush()


def minute(at: str) -> str:
    """A time of an answer, to the minute."""
    return f"{datetime.fromisoformat(at):%Y-%m-%d %H:%M}"


def second(at: str | None) -> str | None:
    """A time of an answer, to the second."""
    return None if at is None else datetime.fromisoformat(at).isoformat(" ", "seconds")


def cell(value: object) -> object:
    """A time to the second, in UTC as the service says it; a list in one cell."""
    match value:
        case str() if len(value) > 19 and value[4:5] == "-" and value[10:11] == "T":
            return datetime.fromisoformat(value).isoformat(" ", "seconds")
        case list():
            return ", ".join(map(str, value)) or None
        case dict():
            return ", ".join(f"{name} {each}" for name, each in value.items() if each is not None) or None
        case float():
            return f"{value:g}"
        case _:
            return value


def write_line(text: str) -> None:
    """One line."""
    sys.stdout.write(text + "\n")


def show_progress(done: int, total: int, what: str, *, goes_on: bool = False) -> None:
    """A bar on standard error, nothing where that is no terminal. `what` is counted, in the plural.

    The line ends when all is done, unless it `goes_on` until `end_progress`.
    """
    if sys.stderr.isatty():
        filled = _BAR_WIDTH * min(done, total) // max(total, 1)
        end = "\n" if done >= total and not goes_on else ""
        sys.stderr.write(f"\r[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {done:,}/{total:,} {what}\x1b[K{end}")
        sys.stderr.flush()


def end_progress() -> None:
    """Ends a line that goes on."""
    if sys.stderr.isatty():
        sys.stderr.write("\n")
        sys.stderr.flush()
