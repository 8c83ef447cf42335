r"""Layout of kombu's queues in Redis. Pure.

A queue is a list for each priority, `celery` and `celery\x06\x163` ..., the oldest at the right.
Messages that a worker holds, above all ETAs, are in the hash `unacked`, by delivery tag, as
`[message, exchange, routing key]`; `unacked_index` has the time of each.
"""

import json
from typing import Any, Final, NamedTuple

SEPARATOR: Final = "\x06\x16"
PRIORITIES: Final = range(1, 10)
UNACKED: Final = "unacked"
UNACKED_INDEX: Final = "unacked_index"
BINDINGS: Final = "_kombu.binding."


class Unacked(NamedTuple):
    """A message that a worker holds, or held."""

    value: bytes
    exchange: str
    routing_key: str
    priority: int


def priority_lists(queue: str) -> list[str]:
    """Return the lists of a queue, the highest priority first."""
    return [queue, *(f"{queue}{SEPARATOR}{priority}" for priority in PRIORITIES)]


def read_unacked(entry: bytes) -> Unacked | None:
    """Parse an entry of the hash; None: it is laid out in another way."""
    try:
        message, exchange, routing_key = json.loads(entry)
        properties = message["properties"]
        info: dict[str, Any] = properties.get("delivery_info") or {}
        priority = properties.get("priority") or info.get("priority") or 0
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return Unacked(
        # as kombu writes it back
        json.dumps(message).encode(),
        str(exchange or info.get("exchange") or ""),
        str(routing_key or info.get("routing_key") or ""),
        int(priority) if str(priority).isdecimal() else 0,
    )


def bound_queue(member: bytes) -> tuple[str, str]:
    """Return routing key and queue of a member of an exchange's bindings."""
    routing_key, _, rest = member.decode("utf-8", "replace").partition(SEPARATOR)
    return routing_key, rest.rpartition(SEPARATOR)[2]
