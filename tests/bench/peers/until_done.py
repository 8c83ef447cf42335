"""The clock of a peer: from when it may start until the database shows nothing open.

Prints seconds as JSON.
"""

import asyncio
import json
import sys
import time
from collections.abc import Coroutine
from typing import Any, LiteralString

from psycopg import AsyncConnection

_LOOK_SECONDS = 0.02
_LONGEST_SECONDS = 900


async def until_done(
    url: str, working: Coroutine[Any, Any, object], *, is_open: LiteralString, vacuum: LiteralString
) -> None:
    """Run `working` and stop the clock by `is_open`; then end it."""
    async with (
        await AsyncConnection.connect(url, autocommit=True) as connection,
        asyncio.timeout(_LONGEST_SECONDS),
    ):
        await connection.execute(vacuum)
        started = time.perf_counter()
        worker = asyncio.create_task(working)
        while True:
            has_ended = worker.done()
            row = await (await connection.execute(is_open)).fetchone()
            if row is not None and not row[0]:
                break
            if has_ended:
                worker.result()
                raise RuntimeError("the peer ended before the work did")
            await asyncio.sleep(_LOOK_SECONDS)
        seconds = time.perf_counter() - started
    sys.stdout.write(json.dumps({"seconds": seconds}))
    sys.stdout.flush()
