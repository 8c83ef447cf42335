"""The breaker in front of the database: refuses pushes at once in place of a timeout each."""

from collections.abc import Callable
from typing import Final

PAUSE_SECONDS: Final = 0.5


class DatabaseBreaker:
    """Refuses at once while the database is away, and lets a request a pause through as a probe.

    Closed (all pass), open until a time (none passes), half open (one passes, the others wait
    for its outcome). With `opened`, which hears that it opens, no request is a probe: it stays open
    until `close`.
    """

    __slots__ = ("_open_until", "_opened", "_pause_seconds", "_probing_until")

    def __init__(
        self, pause_seconds: float = PAUSE_SECONDS, *, opened: Callable[[], None] | None = None
    ) -> None:
        self._pause_seconds = pause_seconds
        self._opened = opened
        self._open_until: float | None = None
        self._probing_until = float("-inf")

    @property
    def is_closed(self) -> bool:
        """True while no failure is known."""
        return self._open_until is None

    def lets_through(self, now: float) -> bool:
        """Return whether this request may try. A probe that never reports is given up after a
        pause.
        """
        if self._open_until is None:
            return True
        if self._opened is not None or now < self._open_until or now < self._probing_until:
            return False
        self._probing_until = now + self._pause_seconds
        return True

    def succeeded(self) -> None:
        """Note that the database answered a request."""
        if self._opened is None:
            self.close()

    def close(self) -> None:
        self._open_until = None
        self._probing_until = float("-inf")

    def failed(self, now: float) -> None:
        """Note that a request did not reach the database, or got no answer."""
        if self._opened is not None and self._open_until is None:
            self._opened()
        self._open_until = now + self._pause_seconds
        self._probing_until = float("-inf")
