"""The statement that sends wake-ups, of the waker's own connection and of a listener's."""

from collections.abc import Mapping
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.database.queries import queries

_PREPARED_AFTER: Final = 2
_SQL = queries("statesvc.database.wakeups", "wakeup")


async def prepare_to_send(connection: AsyncConnection[Any]) -> None:
    """Prepare a connection past any pooler, once."""
    await connection.execute(_SQL["settings"])
    # one statement for as long as it lasts
    connection.prepare_threshold = _PREPARED_AFTER


async def send_wakeups(connection: AsyncConnection[Any], wakeups: Mapping[str, str]) -> None:
    """Send wake-ups. `wakeups`: a payload by channel."""
    await connection.execute(
        _SQL["notify"], {"channels": list(wakeups), "payloads": list(wakeups.values())}
    )
