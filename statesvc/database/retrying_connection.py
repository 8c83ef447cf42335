"""Connections that are tried again at once: a server that takes another's place is away for less than the second that a pool waits."""

import asyncio
from contextlib import suppress
from typing import Any, Final, Self

import psycopg
from psycopg import AsyncConnection

_AGAIN_SECONDS: Final = (0.05, 0.1, 0.2, 0.4)
"""Between the tries of one attempt; the pool itself tries again after a second, then after two."""


class RetryingConnection(AsyncConnection[Any]):
    """For pools. `connect` takes psycopg's own arguments."""

    @classmethod
    async def connect(cls, conninfo: str = "", **options: Any) -> Self:  # noqa: ANN401 - psycopg's, passed on
        """Raises OperationalError when the last try failed."""
        for pause in _AGAIN_SECONDS:
            with suppress(psycopg.OperationalError):
                return await super().connect(conninfo, **options)
            await asyncio.sleep(pause)
        return await super().connect(conninfo, **options)
