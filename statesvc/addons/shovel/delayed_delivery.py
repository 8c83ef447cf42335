"""Celery's native delayed delivery: 28 queues with delays of 1, 2, 4, ... seconds. Pure.

The bits of the routing key choose the queues. `0.0. .. .1.0.celery` published to
`celery_delayed_27` waits two seconds and goes to `celery`: each level's queue holds it for its time
to live, or is passed by. The prefix is the application's, as kombu allows.

A task that kombu before 5.7 retried carries a group of bits for each retry; the first group counts.
"""

import re
from datetime import datetime, timedelta
from typing import Final

LEVELS: Final = 28
_QUEUE: Final = re.compile(r"(?:(?P<prefix>.+)_)?celery_delayed_(?P<level>\d+)")
_KEY: Final = re.compile(
    rf"(?P<bits>(?:[01]\.){{{LEVELS}}})(?:(?:[01]\.){{{LEVELS}}})*(?P<destination>.+)", re.DOTALL
)
SECONDS_MAX: Final = 2**LEVELS - 1


def level_names(prefix: str = "") -> list[str]:
    """Return its queues, the longest delay first."""
    before = f"{prefix}_" if prefix else ""
    return [f"{before}celery_delayed_{level}" for level in reversed(range(LEVELS))]


def is_delaying(queue: str) -> bool:
    """Return whether this is a delay queue."""
    found = _QUEUE.fullmatch(queue)
    return found is not None and int(found["level"]) < LEVELS


def destination(routing_key: str) -> str:
    """Return where a delayed message goes in the end; a key that holds no delay is it."""
    found = _KEY.fullmatch(routing_key)
    return routing_key if found is None else found["destination"]


def due_time(queue: str, routing_key: str, *, now: datetime) -> datetime | None:
    """Return when a message of such a queue is due at the latest that does not say so itself: after
    this level and those below.

    None: no such.
    """
    found, key = _QUEUE.fullmatch(queue), _KEY.fullmatch(routing_key)
    if found is None or key is None:
        return None
    level = int(found["level"])
    below = key["bits"].replace(".", "")[LEVELS - level :]
    return now + timedelta(seconds=2**level + (int(below, 2) if below else 0))


def delayed_address(queue: str, routing_key: str, *, delay: timedelta) -> tuple[str, str]:
    """Return exchange and routing key that deliver after this delay to where the message of
    such a queue was to go.
    """
    found = _QUEUE.fullmatch(queue)
    prefix = "" if found is None or found["prefix"] is None else f"{found['prefix']}_"
    seconds = max(0, min(int(delay.total_seconds()), SECONDS_MAX))
    bits = ".".join(f"{seconds:0{LEVELS}b}")
    return f"{prefix}celery_delayed_{LEVELS - 1}", f"{bits}.{destination(routing_key)}"
