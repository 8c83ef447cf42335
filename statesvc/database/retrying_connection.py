"""Connections that are tried again at once: a server that takes another's place is away for less
than the second that a pool waits.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Self

import psycopg

from statesvc.database.service_connection import ServiceConnection

# Pause between tries within an attempt; the pool itself would retry after one second, then two.
_AGAIN_SECONDS: Final = (0.05, 0.1, 0.2, *[0.4] * 6)


class RetryingConnection(ServiceConnection):
    """Connection of a pool. `connect` takes psycopg's own arguments."""

    @classmethod
    # psycopg's, passed on
    async def connect(cls, conninfo: str = "", **options: Any) -> Self:  # noqa: ANN401
        """Connect; `failed` is called with the error of each try. Raises OperationalError."""
        failed: Callable[[psycopg.Error], None] | None = options.pop("failed", None)
        for pause in _AGAIN_SECONDS:
            try:
                return await super().connect(conninfo, **options)
            except psycopg.OperationalError as error:
                if failed is not None:
                    failed(error)
            await asyncio.sleep(pause)
        return await super().connect(conninfo, **options)
