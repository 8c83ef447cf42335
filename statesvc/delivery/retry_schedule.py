"""Schedule of retries of a failed notification. Pure: the jitter and the time are arguments."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

# After the first failure, the second, ...: about 42 hours in all.
DELAYS_SECONDS: Final = (5, 30, 2 * 60, 10 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 24 * 3600)
ATTEMPTS_MAX: Final = len(DELAYS_SECONDS) + 1
JITTER_SHARE_MAX: Final = 0.2
RETRY_AFTER_SECONDS_MIN: Final = 1.0
RETRY_AFTER_SECONDS_MAX: Final = 24 * 3600.0


def next_delay_seconds(
    attempts: int, *, retry_after_seconds: float | None, jitter: float
) -> float | None:
    """Return the seconds until the next try after `attempts` failed tries; None: that was the last.

    `retry_after_seconds` of the subscriber replaces the scheduled delay. `jitter` in 0..1 only
    ever adds, so that no call is earlier than the receiver asked.
    """
    if attempts >= ATTEMPTS_MAX:
        return None
    if retry_after_seconds is None:
        delay: float = DELAYS_SECONDS[max(attempts, 1) - 1]
    else:
        delay = min(max(retry_after_seconds, RETRY_AFTER_SECONDS_MIN), RETRY_AFTER_SECONDS_MAX)
    return delay * (1 + JITTER_SHARE_MAX * jitter)


def parse_retry_after(value: str | None, *, now: datetime) -> float | None:
    """Return the seconds that a `Retry-After` header asks for, as number or HTTP date; None
    where it makes no sense.
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        instant = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return max(0.0, (instant - now).total_seconds())
