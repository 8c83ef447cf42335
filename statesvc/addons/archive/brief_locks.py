"""Removing a table that others still use: the lock is requested briefly and repeatedly, so that no
transaction waits behind it for long.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import psycopg

from statesvc.database.sql_errors import Failure, failure

TRIES: Final = 20
_AGAIN_SECONDS: Final = 0.5
T = TypeVar("T")


async def until_let_go(take: Callable[[], Awaitable[T]], *, tries: int) -> T | None:
    """Return the result of `take`; None: the locks were held at every attempt.

    Other than transient errors pass through.
    """
    for attempt in range(tries):
        try:
            return await take()
        except psycopg.Error as error:
            if failure(error) is not Failure.TRANSIENT:
                raise
        if attempt + 1 < tries:
            await asyncio.sleep(_AGAIN_SECONDS)
    return None
