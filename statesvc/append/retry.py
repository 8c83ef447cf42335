"""Trying a transaction again: after which failures, after which pause, and how often.

A transient failure says nothing about the messages: the same transaction is tried again. Any other failure is due to one message; the
caller halves its batch until that message stands alone, and the others go on.
"""

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from enum import Enum
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, TypeVar
from uuid import UUID

import psycopg
import structlog
from aiohttp import ClientError, ClientResponseError
from psycopg import AsyncConnection

from statesvc.database.sql_errors import Failure, failure
from statesvc.log.archive.log_archive import LogArchive
from statesvc.log.archive.log_archive_errors import ArchivedHistoryError, LogArchiveError

RETRY_FIRST_SECONDS: Final = 5.0
RETRY_MAX_SECONDS: Final = 300.0
RETRY_JITTER: Final = 0.25
RETRIES_MAX: Final = 20
"""Times that a message is given back for a transient failure, over more than an hour, before an operator must decide."""
_AGAIN_FIRST_SECONDS: Final = 0.1
_AGAIN_MAX_SECONDS: Final = 2.0

T = TypeVar("T")


class OvertakenError(RuntimeError):
    """Another transaction holds, or has just made, shipments that this one was to write."""

    def __init__(self, shipment_ids: Collection[UUID]) -> None:
        super().__init__()
        self.shipment_ids = shipment_ids


log = structlog.get_logger()


class Fault(Enum):
    """Whose fault it is."""

    TRANSIENT = "transient"
    LOCKED = "locked"
    """Another transaction holds a lock that one of the messages needs."""
    PERMANENT = "permanent"


FAULTS: Final[Mapping[Failure, Fault]] = MappingProxyType(
    {
        Failure.UNAVAILABLE: Fault.TRANSIENT,  # connection lost, server full, out of disk or memory
        Failure.TRANSIENT: Fault.TRANSIENT,  # serialisation, deadlock, statement timeout
        Failure.FORBIDDEN: Fault.TRANSIENT,  # an installation that its operator repairs
        Failure.DEFECT: Fault.TRANSIENT,  # a schema of another release: every message would fail alike
        Failure.NO_PARTITION: Fault.TRANSIENT,  # a clock, or partitions, that an operator sets right
        Failure.DUPLICATE: Fault.TRANSIENT,  # another process was faster; the next try sees it
        Failure.IMMUTABLE: Fault.TRANSIENT,
        Failure.NOT_ARCHIVED: Fault.TRANSIENT,
        Failure.MISROUTED: Fault.TRANSIENT,  # a pooler that is set up wrongly
        Failure.REFUSED_DATA: Fault.PERMANENT,  # this row can't be stored, today or tomorrow
    }
)
"""What the database's failures say about the messages. The state of the database is never a message's fault."""


def classify(error: BaseException) -> Fault:
    """Permanent: data that the database refuses, or a defect of ours in what a message led to. It would fail again.

    Transient: the state of the database, of a dependency that answers 5xx, or of this process (memory), where any message would fail.
    """
    match error:
        case psycopg.errors.LockNotAvailable() | OvertakenError():
            return Fault.LOCKED
        case psycopg.Error() | OSError() | TimeoutError():
            return FAULTS[failure(error)]
        case LogArchiveError() | ArchivedHistoryError():
            return Fault.TRANSIENT  # a file that an operator restores
        case ClientResponseError(status=status):
            return Fault.TRANSIENT if status >= HTTPStatus.INTERNAL_SERVER_ERROR else Fault.PERMANENT
        case ClientError() | MemoryError():
            return Fault.TRANSIENT
        case _:
            return Fault.PERMANENT


def again_seconds(attempt: int) -> float:
    """Pause before the same batch is tried again under its lease; `attempt` from 0, full jitter."""
    return random.uniform(0.0, min(_AGAIN_MAX_SECONDS, _AGAIN_FIRST_SECONDS * 2 ** min(attempt, 10)))  # noqa: S311 - jitter


def retry_seconds(retries: int) -> float:
    """Pause before a message is available again after its lease was given up; `retries` from 0, 5 s .. 300 s, +-25 %."""
    pause: float = min(RETRY_MAX_SECONDS, RETRY_FIRST_SECONDS * 2 ** min(retries, 10))
    return pause * random.uniform(1 - RETRY_JITTER, 1 + RETRY_JITTER)  # noqa: S311 - jitter


async def run_transaction(
    connect: Callable[[], AbstractAsyncContextManager[AsyncConnection[Any]]],
    transaction: Callable[[AsyncConnection[Any]], Awaitable[T]],
    *,
    archive: LogArchive | None = None,
    tries: int | None = None,
    deadline: float | None = None,
    raises_locked: bool = False,
) -> T:
    """Runs `transaction` on a connection of `connect`, again after transient failures; `deadline` is on the monotonic clock.

    If it needs archived history, `archive` restores that first, and the transaction runs again on the same connection.
    Raises the last error once a failure is permanent, the tries are used up, or the next pause would pass the deadline; with
    `raises_locked` at once if a lock could not be taken.
    """
    for attempt in itertools.count():
        try:
            async with connect() as connection:
                try:
                    return await transaction(connection)
                except ArchivedHistoryError as archived:
                    if archive is None:
                        raise
                    await archive.bring_back(connection, archived.shipments)
                return await transaction(connection)
        except Exception as error:
            pause = again_seconds(attempt)
            is_last = attempt + 1 == tries or (deadline is not None and time.monotonic() + pause >= deadline)
            fault = classify(error)
            if is_last or fault is Fault.PERMANENT or (fault is Fault.LOCKED and raises_locked):
                raise
            log.warning("transaction_retried", attempt=attempt, exc_info=True)
            await asyncio.sleep(pause)
    raise AssertionError("the last try returns or raises")
