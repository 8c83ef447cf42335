"""Connections that are tried again at once: a server that takes another's place is away for less than the second that a pool waits."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Self

import psycopg

from statesvc.database.service_connection import ServiceConnection

_AGAIN_SECONDS: Final = (0.05, 0.1, 0.2, *[0.4] * 6)
"""Between the tries of one attempt, which lasts as long as a pool tries; the pool itself would try again after a second, then after two."""


class RetryingConnection(ServiceConnection):
    """Connection of a pool. `connect` takes psycopg's own arguments."""

    @classmethod
    async def connect(cls, conninfo: str = "", **options: Any) -> Self:  # noqa: ANN401 - psycopg's, passed on
        """Connect; the option `failed` is called with the error of each try. Raises OperationalError when the last one failed."""
        failed: Callable[[psycopg.Error], None] | None = options.pop("failed", None)
        for pause in _AGAIN_SECONDS:
            try:
                return await super().connect(conninfo, **options)
            except psycopg.OperationalError as error:
                if failed is not None:
                    failed(error)
            await asyncio.sleep(pause)
        return await super().connect(conninfo, **options)
