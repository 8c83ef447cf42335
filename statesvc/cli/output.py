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
from statesvc.cli.presentation import Painted, paint, presentation
from statesvc.http.views import Block, Cell, Grid, Line, Listing, Passage
from statesvc.telemetry.colour import Colour

_BAR_WIDTH: Final = 40
_GAP: Final = "  "
_NOTHING: Final = Painted("-", None)
_WRAPPED_WIDTH_MIN: Final = 12
_WORD_MAX: Final = 36


def write_table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], *, wide: Collection[str] = ()
) -> None:
    """Write columns as wide as their widest cell; None is a dash.

    On a terminal the widest columns wrap so that the table fits; if that is not enough, empty
    columns are left out. `wide`: headings of columns that `-o wide` alone shows.
    """
    shown = [
        index
        for index, heading in enumerate(headings)
        if heading not in wide or presentation().wide
    ]
    titles = [Painted(headings[index], Colour.BOLD) for index in shown]
    cells = [titles, *([_cell(row[index]) for index in shown] for row in rows)]
    widths = [max(len(row[column].text) for row in cells) for column in range(len(shown))]
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    if columns is not None and _table_width(widths) > columns:
        filled = [
            place for place in range(len(shown)) if any(row[place] != _NOTHING for row in cells[1:])
        ]
        cells, widths = (
            [[row[place] for place in filled] for row in cells],
            [widths[place] for place in filled],
        )
        words = [
            max(len(word) for row in cells for word in (row[column].text.split() or [""]))
            for column in range(len(filled))
        ]
        widths = fitting(widths, words, columns)
    for row in cells:
        wrapped = [_wrapped(cell.text, width) for cell, width in zip(row, widths, strict=True)]
        for line in zip_longest(*wrapped, fillvalue=""):
            padded = [
                _padded(text, width, cell.colour)
                for text, width, cell in zip(line, widths, row, strict=True)
            ]
            sys.stdout.write(_GAP.join(padded).rstrip() + "\n")


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False) if len(text) > width else [text]


def _cell(value: object) -> Painted:
    match value:
        case Painted():
            return value
        case datetime():
            return Painted(shown_time(value), None)
        case None:
            return _NOTHING
        case _:
            return Painted(str(value), None)


def _padded(text: str, width: int, colour: Colour | None) -> str:
    return paint(text, colour) + " " * (width - len(text))


def _table_width(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def fitting(widths: Sequence[int], words: Sequence[int], columns: int) -> list[int]:
    """Return the widths for a terminal of this many columns: the widest wrap, at blanks.

    `words`: the longest in each column. Ids and numbers, which may be copied, stay in one
    piece, even where the table becomes wider than the terminal.
    """
    fitted = list(widths)
    least = [max(min(word, _WORD_MAX), _WRAPPED_WIDTH_MIN) for word in words]
    excess = _table_width(fitted) - columns
    while excess > 0 and (
        wider := [column for column, width in enumerate(fitted) if width > least[column]]
    ):
        fitted[max(wider, key=fitted.__getitem__)] -= 1
        excess -= 1
    return fitted


def write_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode() + "\n")


def time_of(at: str | None) -> str | None:
    """Return a time of an answer as all commands show times, or None."""
    return None if at is None else shown_time(datetime.fromisoformat(at))


def shown_time(at: datetime) -> str:
    """Return the time to the second, in its own zone.

    With `--ages` the time since or until then.
    """
    if not presentation().ages:
        return at.isoformat(" ", "seconds").removesuffix("+00:00") + ("" if at.utcoffset() else "Z")
    seconds = (datetime.now(UTC) - at).total_seconds()
    return f"{duration(seconds)} ago" if seconds >= 0 else f"in {duration(-seconds)}"


def cell(value: object) -> object:
    """Return a member of an answer as a cell: times in the common form, a list in a single cell."""
    match value:
        case str() if len(value) > 19 and value[4:5] == "-" and value[10:11] == "T":
            return time_of(value)
        case list():
            return ", ".join(str(cell(each)) for each in value) or None
        case dict():
            return (
                ", ".join(
                    f"{name} {cell(each)}" for name, each in value.items() if each not in (None, "")
                )
                or None
            )
        case float():
            return f"{value:g}"
        case _:
            return value


def write_line(text: str) -> None:
    sys.stdout.write(text + "\n")


def write_blocks(blocks: Iterable[Block], *, is_failure: bool = False) -> None:
    """Write a view. `is_failure`: refusals go to standard error."""
    is_first = True
    for block in blocks:
        match block:
            case Line(text, True) if is_failure:
                sys.stderr.write(f"statesvc: {text}\n")
                continue
            case Line(text, _):
                write_line(text)
            case Grid():
                _write_title(block.title, is_first=is_first)
                headings = [heading.upper() for heading in block.headings]
                wide = {heading.upper() for heading in block.wide}
                rows = [[_drawn(each) for each in row] for row in block.rows]
                write_table(headings, rows, wide=wide)
            case Listing():
                _write_title(block.title, is_first=is_first)
                write_table(
                    ("FIELD", "VALUE"), [(name.lower(), _drawn(fact)) for name, fact in block.facts]
                )
            case Passage():
                _write_title(block.title, is_first=is_first)
                write_line(block.lines)
        is_first = False


def _write_title(title: str, *, is_first: bool) -> None:
    if title:
        write_line(f"{'' if is_first else chr(10)}{title.lower()}:")


def _drawn(drawn: Cell) -> object:
    return f"{drawn.value:g}" if isinstance(drawn.value, float) else drawn.value


def write_answer(text: str, document: Mapping[str, Any], *, as_json: bool) -> None:
    """Write an answer as lines for people, or as a JSON document for scripts."""
    if as_json:
        write_json(document)
    else:
        write_line(text)


def show_progress(done: int, total: int, what: str, *, goes_on: bool = False) -> None:
    """Show a bar on standard error if it is a terminal. `what` is counted, in the plural.

    The line ends when all is done, unless it `goes_on` until `end_progress`.
    """
    if sys.stderr.isatty():
        filled = _BAR_WIDTH * min(done, total) // max(total, 1)
        end = "\n" if done >= total and not goes_on else ""
        sys.stderr.write(
            f"\r[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {done:,}/{total:,} {what}\x1b[K{end}"
        )
        sys.stderr.flush()


def end_progress() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\n")
        sys.stderr.flush()
