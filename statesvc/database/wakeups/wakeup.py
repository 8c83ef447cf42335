"""The statement that sends wake-ups, of the waker's own connection and of a listener's."""

import time
from collections.abc import Mapping
from typing import Any, Final

import psycopg
import structlog
from psycopg import AsyncConnection

from statesvc.database.queries import queries

_PREPARED_AFTER: Final = 2
_SAID_SECONDS: Final = 30.0
_said_at = float("-inf")
_SQL = queries("statesvc.database.wakeups", "wakeup")
_log = structlog.get_logger()


async def prepare_to_send(connection: AsyncConnection[Any]) -> None:
    """Prepare a connection past any pooler, once."""
    await connection.execute(_SQL["settings"])
    # one statement for as long as it lasts
    connection.prepare_threshold = _PREPARED_AFTER


async def send_wakeups(connection: AsyncConnection[Any], wakeups: Mapping[str, str]) -> None:
    """Send wake-ups. `wakeups`: a payload by channel.

    Where the server's NOTIFY queue is full they are dropped: listeners look by
    themselves every half minute.
    """
    try:
        await connection.execute(
            _SQL["notify"], {"channels": list(wakeups), "payloads": list(wakeups.values())}
        )
    # no retry: a full queue stays full until the session that holds it is gone
    except psycopg.errors.ProgramLimitExceeded:
        _say_late()


def _say_late() -> None:
    global _said_at  # noqa: PLW0603 - one line each half minute for the whole process
    if time.monotonic() - _said_at >= _SAID_SECONDS:
        _said_at = time.monotonic()
        _log.warning(
            "wakeups_late",
            why=(
                "the NOTIFY queue of the PostgreSQL server is full: what was done took effect, and"
                " is noticed within half a minute; `statesvc status` names the session that holds"
                " the queue"
            ),
        )
