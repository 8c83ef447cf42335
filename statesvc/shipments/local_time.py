"""Times in the offset in which a carrier stated them: columns of time hold only the instant, so the offset is stored elsewhere."""

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Final

import orjson

_STATED: Final = {"since": "status_since", "last_event_at": "last_event_at", "delivered_at": "delivered_at"}


def in_offset(instant: datetime, offset_seconds: int) -> datetime:
    """Return the same instant on the carrier's wall clock."""
    return instant.astimezone(timezone(timedelta(seconds=offset_seconds)))


def local_times(state: bytes) -> Mapping[str, datetime]:
    """Return the times of a projected state, by the name of their column: the state keeps them as the events stated them."""
    document = orjson.loads(state)
    return {column: datetime.fromisoformat(document[name]) for name, column in _STATED.items() if document.get(name)}
