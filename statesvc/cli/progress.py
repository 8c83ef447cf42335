"""A progress bar on standard error; nothing where that is no terminal."""

import sys
from typing import Final

_BAR: Final = 40


def show_progress(done: int, total: int, what: str, *, goes_on: bool = False) -> None:
    """`what` is counted, in the plural. The line ends when all is done, unless it `goes_on` until `end_progress`."""
    if sys.stderr.isatty():
        filled = _BAR * min(done, total) // max(total, 1)
        end = "\n" if done >= total and not goes_on else ""
        sys.stderr.write(f"\r[{'#' * filled}{'.' * (_BAR - filled)}] {done:,}/{total:,} {what}\x1b[K{end}")
        sys.stderr.flush()


def end_progress() -> None:
    """Ends a line that goes on."""
    if sys.stderr.isatty():
        sys.stderr.write("\n")
        sys.stderr.flush()
