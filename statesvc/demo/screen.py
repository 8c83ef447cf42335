"""A terminal that stays alive: lines scroll, and one status line stands below them where the output is a terminal."""

import sys
import time
from typing import Final, TextIO

PLAIN_EVERY_SECONDS: Final = 5.0
CHANGES_A_SECOND: Final = 4


class Screen:
    """Where there are more changes than an eye can follow, only some are shown; all are counted in the status line."""

    def __init__(self, stream: TextIO = sys.stdout) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._allowance = float(CHANGES_A_SECOND)
        self._refilled = time.monotonic()
        self._told_status = 0.0
        self._status = ""

    def say(self, text: str) -> None:
        """A line that is always shown."""
        self._line(text)

    def change(self, text: str) -> None:
        """A line that may be left out."""
        now = time.monotonic()
        self._allowance = min(CHANGES_A_SECOND, self._allowance + (now - self._refilled) * CHANGES_A_SECOND)
        self._refilled = now
        if self._allowance >= 1:
            self._allowance -= 1
            self._line(f"  {time.strftime('%H:%M:%S')}  {text}")

    def status(self, text: str) -> None:
        """Replaces the status line; without a terminal a line now and then."""
        self._status = text
        if self._live:
            self._stream.write(f"\r\x1b[2K{text}")
            self._stream.flush()
        elif time.monotonic() - self._told_status >= PLAIN_EVERY_SECONDS:
            self._told_status = time.monotonic()
            self._line(text)

    def _line(self, text: str) -> None:
        self._stream.write(f"\r\x1b[2K{text}\n{self._status}" if self._live else f"{text}\n")
        self._stream.flush()
