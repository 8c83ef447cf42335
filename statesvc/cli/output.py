"""Writing results: aligned columns and a progress bar for people, JSON for scripts."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

_BAR_WIDTH: Final = 40


def write_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as their widest cell; None is a dash."""
    cells = [list(headings), *(["-" if value is None else str(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    for row in cells:
        sys.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n")


def write_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """One JSON document, indented."""
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode() + "\n")


def write_json_line(value: Mapping[str, Any]) -> None:
    """One JSON document on a line of its own, at once."""
    sys.stdout.write(orjson.dumps(value, default=str).decode() + "\n")
    sys.stdout.flush()


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
