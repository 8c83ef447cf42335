"""Decide which request is repeated, and when. Values in, values out: the transports wait."""

import random
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
# Calls that a second time do nothing again: an event has an id, the others only read or set a
# state.
_REPEATABLE_POSTS = re.compile(
    r"/v1/(events|shipments/lookup|shipments/[^/]+/[^/]+/evidence|subscriptions/[^/]+/(pause|resume))$"
)
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_REFUSED_BEFORE_WORK = 429
_UNAVAILABLE = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Policy for retries. `retries` counts the repeats; times are in seconds."""

    retries: int = 3
    first_wait: float = 0.5
    longest_wait: float = 8.0
    longest_retry_after: float = 60.0

    def wait_after_error(
        self, request: httpx.Request, error: httpx.TransportError, *, repeats: int
    ) -> float | None:
        """Return the pause before the next try, or None where the error stands."""
        if repeats >= self.retries or not (
            isinstance(error, _NEVER_SENT) or is_repeatable(request)
        ):
            return None
        return self._backoff(repeats)

    def wait_after_answer(
        self, request: httpx.Request, response: httpx.Response, *, repeats: int
    ) -> float | None:
        """Return the pause before the next try, or None where the answer stands."""
        if repeats >= self.retries:
            return None
        if response.status_code != _REFUSED_BEFORE_WORK and not (
            response.status_code in _UNAVAILABLE and is_repeatable(request)
        ):
            return None
        asked = retry_after(response)
        if asked is not None and asked > self.longest_retry_after:
            return None
        return max(self._backoff(repeats), asked or 0.0)

    def _backoff(self, repeats: int) -> float:
        longest = min(self.longest_wait, self.first_wait * 2.0**repeats)
        return random.uniform(longest / 2, longest)  # noqa: S311 - spreads callers, guards nothing


def is_repeatable(request: httpx.Request) -> bool:
    """Return whether a second request has no second effect, even if the first one was carried
    out.
    """
    return request.method in _IDEMPOTENT or (
        request.method == "POST" and bool(_REPEATABLE_POSTS.search(request.url.path))
    )


def retry_after(response: httpx.Response) -> float | None:
    """Read `Retry-After`: seconds, or a date."""
    printed = response.headers.get("retry-after")
    if printed is None:
        return None
    if printed.strip().isdecimal():
        return float(printed)
    try:
        return max(0.0, (parsedate_to_datetime(printed) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None
