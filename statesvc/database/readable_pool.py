"""Connections that still read while the database takes no writes: for pages that say so.

Whoever writes, or must not answer from a server that is behind, keeps to the pool itself,
which leaves such a server.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection
from psycopg_pool import PoolTimeout

from statesvc.database.pool import Pool


@dataclass(frozen=True, slots=True)
class ReadablePool:
    """The pool; while the server that it finds only reads, `readers`, made with `writes=False`."""

    pool: Pool
    readers: Pool

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        async with AsyncExitStack() as stack:
            yield await self._acquired(stack)

    async def _acquired(self, stack: AsyncExitStack) -> AsyncConnection[Any]:
        if not self.pool.only_reads:
            try:
                return await stack.enter_async_context(self.pool.connection())
            except PoolTimeout:
                if not self.pool.only_reads:
                    raise
        return await stack.enter_async_context(self.readers.connection())
