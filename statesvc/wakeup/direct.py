"""Direct connections to the server (past any pooler) for LISTEN and NOTIFY, and the delays between tries to get one.

A silent peer is noticed: keepalives and `tcp_user_timeout` end a half-open socket within about 15 seconds.
"""

import random
from collections.abc import Iterator
from typing import Any, Final

from psycopg import AsyncConnection

CONNECT_TIMEOUT_SECONDS: Final = 5
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
        keepalives=1,
        keepalives_idle=5,
        keepalives_interval=3,
        keepalives_count=3,
        tcp_user_timeout=15_000,
    )


def reconnect_delays(jitter: random.Random) -> Iterator[float]:
    """Seconds to wait before each next try: doubling up to 5, each between a half and the whole of it."""
    ceiling = _FIRST_DELAY_SECONDS
    while True:
        yield ceiling * (0.5 + jitter.random() / 2)
        ceiling = min(ceiling * 2, _LAST_DELAY_SECONDS)
