"""Direct connections (past any pooler) for LISTEN and NOTIFY, and the delays between tries."""

import random
from collections.abc import Iterator
from typing import Final, LiteralString

from statesvc.database.open_connection import open_connection
from statesvc.database.service_connection import ServiceConnection
from statesvc.database.session_settings import SessionLimits

DIRECT_LIMITS: Final = SessionLimits(
    statement_seconds=3, lock_seconds=3, idle_in_transaction_seconds=15
)
"""Limits of connections for LISTEN, NOTIFY and short statements."""
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
