"""A progress bar on standard error; nothing where that is no terminal."""

import sys
from typing import Final

_BAR: Final = 40


def show_progress(done: int, total: int, what: str) -> None:
    """`what` is counted, in the plural."""
    if sys.stderr.isatty():
        filled = _BAR * min(done, total) // max(total, 1)
        end = "\n" if done >= total else ""
        sys.stderr.write(f"\r[{'#' * filled}{'.' * (_BAR - filled)}] {done:,}/{total:,} {what}{end}")
        sys.stderr.flush()
