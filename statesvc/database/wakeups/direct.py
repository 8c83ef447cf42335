"""Direct connections to the server (past any pooler) for LISTEN and NOTIFY, and the delays between tries to get one.

A silent peer is noticed by the keepalives of every connection.
"""

import random
from collections.abc import Iterator
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.database.pool import CONNECT_TIMEOUT_SECONDS, KEEPALIVE

ANSWER_SECONDS: Final = 5.0
"""A server that takes longer for a statement of these is frozen: its sockets still answer keepalives."""
_FIRST_DELAY_SECONDS: Final = 0.1
_LAST_DELAY_SECONDS: Final = 5.0


async def connect_direct(dsn: str, *, application_name: str) -> AsyncConnection[Any]:
    """An autocommit connection that never prepares statements."""
    return await AsyncConnection.connect(
        dsn,
        autocommit=True,
        prepare_threshold=None,
        application_name=application_name,
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        **KEEPALIVE,
    )


def reconnect_delays(jitter: random.Random) -> Iterator[float]:
    """Seconds to wait before each next try: doubling up to 5, each between a half and the whole of it."""
    ceiling = _FIRST_DELAY_SECONDS
    while True:
        yield ceiling * (0.5 + jitter.random() / 2)
        ceiling = min(ceiling * 2, _LAST_DELAY_SECONDS)
