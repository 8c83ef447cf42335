"""Display of a demo: counts of pushes and notifications, and lines above a status line."""

import sys
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Final, TextIO

from statesvc.addons.demo.traffic import Behaviour

PLAIN_EVERY_SECONDS: Final = 5.0
CHANGES_A_SECOND: Final = 4
LATENCIES_MAX: Final = 2000


@dataclass(slots=True)
class DemoCounts:
    """Counts since the start; latencies of the most recent requests, in milliseconds."""

    behaviours: Counter[Behaviour] = field(default_factory=Counter)
    acknowledged: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    unanswered: int = 0
    verified: int = 0
    forged: int = 0
    ack_milliseconds: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCIES_MAX))

    def summary(self) -> str:
        sent = sum(self.behaviours.values())
        parts = [f"{sent} pushed", f"{self.acknowledged} acknowledged{self._latency()}"]
        odd = [
            f"{self.behaviours[each]} {each.value}"
            for each in Behaviour
            if each is not Behaviour.PLAIN and self.behaviours[each]
        ]
        if odd:
            parts.append(", ".join(odd))
        parts += [
            f"{count} refused with {status}" for status, count in sorted(self.refused.items())
        ]
        if self.unanswered:
            parts.append(f"{self.unanswered} unanswered")
        parts.append(f"{self.verified} notifications, signature right")
        if self.forged:
            parts.append(f"{self.forged} with a wrong signature")
        return " | ".join(parts)

    def _latency(self) -> str:
        if len(self.ack_milliseconds) < 2:
            return ""
        cuts = quantiles(self.ack_milliseconds, n=100)
        return f" (p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms)"


class Display:
    """A terminal: of more changes than an eye can follow only some are shown; all are
    counted in the status line.
    """

    def __init__(self, stream: TextIO = sys.stdout) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._allowance = float(CHANGES_A_SECOND)
        self._refilled = time.monotonic()
        self._status_shown_at = 0.0
        self._status = ""

    def line(self, text: str) -> None:
        self._write(text)

    def change(self, text: str) -> None:
        """Write a line that may be left out."""
        now = time.monotonic()
        self._allowance = min(
            CHANGES_A_SECOND, self._allowance + (now - self._refilled) * CHANGES_A_SECOND
        )
        self._refilled = now
        if self._allowance >= 1:
            self._allowance -= 1
            self._write(f"  {time.strftime('%H:%M:%S')}  {text}")

    def status(self, text: str) -> None:
        """Replace the status line; without a terminal write a line now and then."""
        self._status = text
        if self._live:
            self._stream.write(f"\r\x1b[2K{text}")
            self._stream.flush()
        elif time.monotonic() - self._status_shown_at >= PLAIN_EVERY_SECONDS:
            self._status_shown_at = time.monotonic()
            self._write(text)

    def _write(self, text: str) -> None:
        self._stream.write(f"\r\x1b[2K{text}\n{self._status}" if self._live else f"{text}\n")
        self._stream.flush()
