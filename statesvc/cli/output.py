"""Writing results: aligned columns and a progress bar for people, JSON for scripts."""

import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any, Final

import orjson

from statesvc.background.duration import duration
from statesvc.cli.merged_output import merged_output
from statesvc.cli.presentation import Painted, paint, presentation
from statesvc.telemetry.colour import Colour

NO_PLACE: Final = (
    "A RESTORE FROM A BACKUP WOULD UNDO IT: no place outside the database is configured (STATESVC_CHECKPOINT_PUBLISH, or "
    "STATESVC_SEALER_CHECKPOINT_FILE); note it elsewhere, and repeat it after a restore"
)
"""Consequence where no place holds tombstones."""
_BAR_WIDTH: Final = 40
_GAP: Final = "  "
_WRAPPED_WIDTH_MIN: Final = 12


def write_table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, wide: Collection[str] = ()) -> None:
    """Write columns as wide as their widest cell; None is a dash. On a terminal the widest columns wrap, so that the table fits.

    `wide`: headings of columns that `-o wide` alone shows.
    """
    if (merged := merged_output()) is not None:
        merged.table(headings, rows, wide)
        return
    shown = [index for index, heading in enumerate(headings) if heading not in wide or presentation().wide]
    titles = [Painted(headings[index], Colour.BOLD) for index in shown]
    cells = [titles, *([_cell(row[index]) for index in shown] for row in rows)]
    widths = [max(len(row[column].text) for row in cells) for column in range(len(shown))]
    if sys.stdout.isatty():
        widths = fitting(widths, shutil.get_terminal_size().columns)
    for row in cells:
        wrapped = [
            textwrap.wrap(cell.text, width) if len(cell.text) > width else [cell.text] for cell, width in zip(row, widths, strict=True)
        ]
        for line in zip_longest(*wrapped, fillvalue=""):
            padded = [_padded(text, width, cell.colour) for text, width, cell in zip(line, widths, row, strict=True)]
            sys.stdout.write(_GAP.join(padded).rstrip() + "\n")


def _cell(value: object) -> Painted:
    match value:
        case Painted():
            return value
        case datetime():
            return Painted(shown_time(value), None)
        case None:
            return Painted("-", None)
        case _:
            return Painted(str(value), None)


def _padded(text: str, width: int, colour: Colour | None) -> str:
    return paint(text, colour) + " " * (width - len(text))


def fitting(widths: Sequence[int], columns: int) -> list[int]:
    """Return the widths for a terminal of this many columns: the widest wrap, none below `_WRAPPED_WIDTH_MIN`."""
    fitted = list(widths)
    excess = sum(fitted) + len(_GAP) * (len(fitted) - 1) - columns
    while excess > 0 and max(fitted) > _WRAPPED_WIDTH_MIN:
        fitted[fitted.index(max(fitted))] -= 1
        excess -= 1
    return fitted


def write_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Write one JSON document, indented."""
    if (merged := merged_output()) is not None:
        merged.document(value)
        return
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode() + "\n")


def write_json_line(value: Mapping[str, Any]) -> None:
    """Write one JSON document on a line of its own, at once."""
    if (merged := merged_output()) is not None:
        merged.document(value)
        return
    sys.stdout.write(orjson.dumps(value, default=str).decode() + "\n")
    sys.stdout.flush()


def time_of(at: str | None) -> str | None:
    """Return a time of an answer as all commands show times, or None."""
    return None if at is None else shown_time(datetime.fromisoformat(at))


def shown_time(at: datetime) -> str:
    """Return the time to the second, in the zone that it was stated in; with `--ages` how long ago it was, or how soon it comes."""
    if not presentation().ages:
        return at.isoformat(" ", "seconds").removesuffix("+00:00") + ("" if at.utcoffset() else "Z")
    seconds = (datetime.now(UTC) - at).total_seconds()
    return f"{duration(seconds)} ago" if seconds >= 0 else f"in {duration(-seconds)}"


def cell(value: object) -> object:
    """Return what an answer has as a cell: a time as all are shown, a list in one cell."""
    match value:
        case str() if len(value) > 19 and value[4:5] == "-" and value[10:11] == "T":
            return time_of(value)
        case list():
            return ", ".join(map(str, value)) or None
        case dict():
            return ", ".join(f"{name} {each}" for name, each in value.items() if each is not None) or None
        case float():
            return f"{value:g}"
        case _:
            return value


def write_line(text: str) -> None:
    """Write one line."""
    if (merged := merged_output()) is not None:
        merged.line(text)
    else:
        sys.stdout.write(text + "\n")


def show_progress(done: int, total: int, what: str, *, goes_on: bool = False) -> None:
    """Show a bar on standard error, nothing where that is no terminal. `what` is counted, in the plural.

    The line ends when all is done, unless it `goes_on` until `end_progress`.
    """
    if sys.stderr.isatty():
        filled = _BAR_WIDTH * min(done, total) // max(total, 1)
        end = "\n" if done >= total and not goes_on else ""
        sys.stderr.write(f"\r[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {done:,}/{total:,} {what}\x1b[K{end}")
        sys.stderr.flush()


def end_progress() -> None:
    """End a line that goes on."""
    if sys.stderr.isatty():
        sys.stderr.write("\n")
        sys.stderr.flush()
