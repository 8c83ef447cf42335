"""A neighbour on the same machine that wants every core for itself, with the
niceness that any program has.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

_PROGRAM: Final = "while True: pass"


@asynccontextmanager
async def busy_cores() -> AsyncIterator[None]:
    """Keep every core busy for the time of the block: a process each, in a session of its own, as
    another service's would be.
    """
    processes: list[asyncio.subprocess.Process] = []
    try:
        for _ in range(os.cpu_count() or 1):
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", _PROGRAM),
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
            processes.append(process)
        yield
    finally:
        for process in processes:
            process.kill()
            await process.wait()
