"""Limits of an API key in a process: concurrent calls, concurrent computed calls, calls per second.

Ingest is not limited here: a poller's pushes are admitted as webhooks are. Streams have limits of
their own.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from aiohttp import hdrs

from statesvc.http.problem import Code, Problem

# Burst of a key after a pause, in seconds of its rate.
BURST_SECONDS: Final = 2.0
RATE_LIMIT: Final = "RateLimit"
RATE_LIMIT_POLICY: Final = "RateLimit-Policy"
_BUSY_SECONDS: Final = 1
_KEYS_MAX: Final = 4096


class KeyLimits:
    """The limits, and the use of each key."""

    def __init__(
        self,
        *,
        calls_max: int,
        computed_max: int,
        calls_per_second: float,
        now: Callable[[], float] = time.monotonic,
        refused: Callable[[str], None] = lambda _kind: None,
    ) -> None:
        self._calls_max = calls_max
        self._burst = max(1.0, calls_per_second * BURST_SECONDS)
        self._computed_max = computed_max
        self._per_second = calls_per_second
        self._now = now
        self._refused = refused
        self._calls: Counter[str] = Counter()
        self._computed: Counter[str] = Counter()
        self._left: dict[str, tuple[float, float]] = {}

    @contextmanager
    def call(self, key_id: str, *, is_computed: bool) -> Iterator[None]:
        """Count a call while it lasts. Raises the problem `too_many_requests`."""
        self._take(key_id)
        if self._calls[key_id] >= self._calls_max:
            raise self._refusal(
                "concurrency", f"key {key_id} has {self._calls_max} calls under way", _BUSY_SECONDS
            )
        if is_computed and self._computed[key_id] >= self._computed_max:
            raise self._refusal(
                "computing",
                f"key {key_id} has {self._computed_max} calls under way that compute",
                _BUSY_SECONDS,
            )
        counters = (self._calls, self._computed) if is_computed else (self._calls,)
        for counter in counters:
            counter[key_id] += 1
        try:
            yield
        finally:
            for counter in counters:
                counter[key_id] -= 1
                if not counter[key_id]:
                    del counter[key_id]

    def headers(self, key_id: str) -> dict[str, str]:
        """Return the remaining quota, as in draft-ietf-httpapi-ratelimit-headers."""
        left = self._left_of(key_id, self._now())
        full_seconds = math.ceil((self._burst - left) / self._per_second)
        window_seconds = math.ceil(self._burst / self._per_second)
        return {
            RATE_LIMIT: f'"key";r={int(left)};t={full_seconds}',
            RATE_LIMIT_POLICY: f'"key";q={int(self._burst)};w={window_seconds}',
        }

    def _left_of(self, key_id: str, now: float) -> float:
        left, at = self._left.get(key_id, (self._burst, now))
        return min(self._burst, left + (now - at) * self._per_second)

    def _take(self, key_id: str) -> None:
        now = self._now()
        left = self._left_of(key_id, now)
        if left < 1:
            seconds = (1 - left) / self._per_second
            raise self._refusal(
                "rate",
                f"key {key_id} asks more than {self._per_second:g} times a second",
                math.ceil(seconds),
            )
        if len(self._left) >= _KEYS_MAX:
            # a key that asked nothing for the time of a burst has all of it again
            self._left = {
                key: (each, then)
                for key, (each, then) in self._left.items()
                if now - then < BURST_SECONDS
            }
        self._left[key_id] = (left - 1, now)

    def _refusal(self, kind: str, detail: str, retry_seconds: int) -> Problem:
        self._refused(kind)
        return Problem(
            Code.TOO_MANY_REQUESTS,
            f"{detail}; wait a little",
            headers={hdrs.RETRY_AFTER: str(retry_seconds)},
        )
