"""The channels of wake-ups, the statement that sends them, and connections for LISTEN and NOTIFY,
which lead past any pooler.
"""

import random
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, LiteralString, Protocol

import psycopg
import structlog
from psycopg import AsyncConnection

from statesvc.database.open_connection import open_connection
from statesvc.database.queries import queries
from statesvc.database.service_connection import ServiceConnection
from statesvc.database.session_settings import SessionLimits

# Messages may be ready to be claimed by a worker.
INBOX: Final = "statesvc_inbox"
# As `INBOX`, for messages that must not wait for a worker's window: released, replayed, repaired.
INBOX_NOW: Final = "statesvc_inbox_now"
# Notifications may be ready to be claimed by a notifier.
OUTBOX: Final = "statesvc_outbox"
# Entries may have been committed that wait to be sealed.
LOG: Final = "statesvc_log"
# A checkpoint was published: the sealed log has grown.
SEALED: Final = "statesvc_sealed"
# Trials may be ready to be claimed by a foreign candidate.
TRIALS: Final = "statesvc_trial"
# Sent together: a worker of another release or language listens on the first alone.
READY_NOW: Final = (INBOX, INBOX_NOW)
# Channels of which the first of several listeners claims; the others hear of it a little later, for
# it may have stopped.
ONE_IS_ENOUGH: Final = frozenset({INBOX, OUTBOX})
# Their listeners have a pace of their own, slower than a waker's.
UNHURRIED: Final = frozenset({LOG})


_PREPARED_AFTER: Final = 2
_SAID_SECONDS: Final = 30.0
_said_at = float("-inf")
_SQL = queries("statesvc.database.wakeups", "wakeup")
_log = structlog.get_logger()


class Wakes(Protocol):
    def wake(self, channel: str) -> None:
        """Notify the listeners of the channel, after the commit. Never waits."""


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


async def notify(connection: AsyncConnection[Any], *channels: str) -> None:
    """Send a wake-up at once, for a caller without a waker, such as a command after its commit."""
    await send_wakeups(connection, dict.fromkeys(channels, ""))


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


# Limits of connections for LISTEN, NOTIFY and short statements.
DIRECT_LIMITS: Final = SessionLimits(
    statement_seconds=3, lock_seconds=3, idle_in_transaction_seconds=15
)
_FIRST_DELAY_SECONDS: Final = 0.1
_LAST_DELAY_SECONDS: Final = 5.0


async def connect_direct(
    dsn: str, *, application_name: LiteralString, limits: SessionLimits = DIRECT_LIMITS
) -> ServiceConnection:
    return await open_connection(dsn, application_name=application_name, limits=limits)


def reconnect_delays(jitter: random.Random) -> Iterator[float]:
    """Yield seconds to wait before each next try: doubling up to 5, each between a
    half and the whole of it.
    """
    ceiling = _FIRST_DELAY_SECONDS
    while True:
        yield ceiling * (0.5 + jitter.random() / 2)
        ceiling = min(ceiling * 2, _LAST_DELAY_SECONDS)
