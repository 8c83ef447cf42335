"""Times in the offset in which a carrier stated them: columns of time hold only the instant, so the
offset is stored elsewhere.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Final

_STATED: Final = {
    "since": "status_since",
    "last_event_at": "last_event_at",
    "delivered_at": "delivered_at",
}


def in_offset(instant: datetime, offset_seconds: int) -> datetime:
    return instant.astimezone(timezone(timedelta(seconds=offset_seconds)))


def local_times(state: Mapping[str, Any]) -> Mapping[str, datetime]:
    """Return the times of a parsed state, by the name of their column: the state keeps them as
    the events stated them.
    """
    return {
        column: datetime.fromisoformat(state[name])
        for name, column in _STATED.items()
        if state.get(name)
    }
