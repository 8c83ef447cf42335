"""Retries of a transaction: which failures, which pauses, how often.

A transient failure is not about the messages: the same transaction is tried again. Any other
failure is due to a message; the caller halves its batch until that message is alone, and the others
go on.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, TypeVar
from uuid import UUID

import psycopg
import structlog
from psycopg import AsyncConnection
from psycopg.errors import LockNotAvailable

from statesvc.database.sql_errors import Failure, failure
from statesvc.files.archive_errors import ArchivedHistoryError, UnreadableArchiveError
from statesvc.log.event_store import wait_for_streams
from statesvc.log.history import History

REDELIVERY_FIRST_SECONDS: Final = 5.0
REDELIVERY_MAX_SECONDS: Final = 300.0
REDELIVERY_JITTER: Final = 0.25
# Times that a message is given back for a transient failure, over more than an hour, before an
# operator must decide.
RETRIES_MAX: Final = 20
_BACKOFF_FIRST_SECONDS: Final = 0.1
_BACKOFF_MAX_SECONDS: Final = 2.0

Connect = Callable[[], AbstractAsyncContextManager[AsyncConnection[Any]]]
T = TypeVar("T")


class LockedShipmentsError(LockNotAvailable):
    """Another transaction holds, or has just made, shipments of this transaction."""

    def __init__(self, shipment_ids: Collection[UUID]) -> None:
        super().__init__("another transaction has locked shipments")
        self.shipment_ids = shipment_ids


log = structlog.get_logger()


class Fault(Enum):
    TRANSIENT = "transient"
    LOCKED = "locked"
    """Another transaction holds a lock that one of the messages needs."""
    PERMANENT = "permanent"


# Meaning of the database's failures for the messages. The state of the database is never a
# message's fault.
FAULTS: Final[Mapping[Failure, Fault]] = MappingProxyType(
    {
        Failure.UNAVAILABLE: Fault.TRANSIENT,  # connection lost, server full, out of disk or memory
        Failure.TRANSIENT: Fault.TRANSIENT,  # serialisation, deadlock, statement timeout
        Failure.FORBIDDEN: Fault.TRANSIENT,  # an installation that its operator repairs
        # a schema of another release: every message would fail alike
        Failure.DEFECT: Fault.TRANSIENT,
        # a clock, or partitions, that an operator sets right
        Failure.NO_PARTITION: Fault.TRANSIENT,
        Failure.DUPLICATE: Fault.TRANSIENT,  # another process was faster; the next try sees it
        Failure.IMMUTABLE: Fault.TRANSIENT,
        Failure.NOT_ARCHIVED: Fault.TRANSIENT,
        Failure.MISROUTED: Fault.TRANSIENT,  # a pooler that is set up wrongly
        Failure.REFUSED_DATA: Fault.PERMANENT,  # this row can't be stored, today or tomorrow
    }
)


def classify(error: BaseException) -> Fault:
    """Classify a failure: permanent where the database refuses the data, or where a message
    led to a defect of ours.

    It would fail again.

    Transient: the state of the database, of the archive, or of this process (memory), where
    any message would fail.
    """
    match error:
        # before psycopg.Error, of which it is a subclass
        case LockNotAvailable():
            return Fault.LOCKED
        case psycopg.Error() | OSError() | TimeoutError():
            return FAULTS[failure(error)]
        case UnreadableArchiveError() | ArchivedHistoryError():
            return Fault.TRANSIENT  # a file that an operator restores
        case MemoryError():
            return Fault.TRANSIENT
        case _:
            return Fault.PERMANENT


def transaction_backoff_seconds(attempt: int) -> float:
    """Pause before the same transaction is tried again under its lease; `attempt` from 0, full
    jitter.
    """
    return random.uniform(  # noqa: S311 - jitter
        0.0, min(_BACKOFF_MAX_SECONDS, _BACKOFF_FIRST_SECONDS * 2 ** min(attempt, 10))
    )


def redelivery_backoff_seconds(retries: int) -> float:
    """Pause before a message is available again after its lease was given up; `retries` from
    0, 5 s .. 300 s, +-25 %.
    """
    pause: float = min(REDELIVERY_MAX_SECONDS, REDELIVERY_FIRST_SECONDS * 2 ** min(retries, 10))
    # jitter
    return pause * random.uniform(1 - REDELIVERY_JITTER, 1 + REDELIVERY_JITTER)  # noqa: S311


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Policy for trying a transaction again. Times are on the monotonic clock."""

    tries: int | None = None
    deadline: float | None = None
    """No pause lasts beyond it."""
    locked_until: float = float("-inf")
    """Until when it waits for locks that others hold; by default not at all."""
    archive: History | None = None
    """Restores history that the transaction needs."""

    def pause(self, error: Exception, *, failures: int) -> float | None:
        """Return the seconds until the next try after this error; None: there is none."""
        now, fault = time.monotonic(), classify(error)
        if fault is Fault.PERMANENT or (fault is Fault.LOCKED and now >= self.locked_until):
            return None
        # no pause: `prepare` waits in line for the lock, and a backoff would lose the place in it
        if isinstance(error, LockedShipmentsError):
            return 0.0
        # once: history that is still missing after it was restored will be missing again
        if isinstance(error, ArchivedHistoryError) and self.archive is not None and failures == 1:
            return 0.0
        if self.tries is not None and failures >= self.tries:
            return None
        pause = transaction_backoff_seconds(failures - 1)
        # a try that begins after the lease has ended could only be fenced off
        return None if self.deadline is not None and now + pause >= self.deadline else pause

    async def prepare(self, connection: AsyncConnection[Any], error: Exception | None) -> None:
        """Prepare the next try after this error, in transactions of their own."""
        match error:
            # before the transaction that needs it: reading files inside would hold its locks for
            # seconds
            case ArchivedHistoryError() if self.archive is not None:
                await self.archive.restore_shipments(connection, error.shipments)
            case LockedShipmentsError():
                # not inside the append: a wait there for one shipment would hold
                # the others of the message
                try:
                    await wait_for_streams(
                        connection,
                        error.shipment_ids,
                        seconds=max(0.0, self.locked_until - time.monotonic()),
                    )
                except LockNotAvailable:
                    raise error from None


async def run_transaction(
    connect: Connect,
    transaction: Callable[[AsyncConnection[Any]], Awaitable[T]],
    policy: RetryPolicy,
) -> T:
    """Run `transaction` and retry as the policy allows. Raises the last error."""
    failures, error = 0, None
    while True:
        try:
            # taken anew for each try: the last one may have failed because its connection did
            async with connect() as connection:
                await policy.prepare(connection, error)
                return await transaction(connection)
        except Exception as caught:
            failures += 1
            pause = policy.pause(caught, failures=failures)
            if pause is None:
                raise
            error = caught
        if pause:
            log.warning("transaction_retried", attempt=failures - 1, exc_info=error)
        # outside `connect`: a pause must not keep a connection of the pool
        await asyncio.sleep(pause)
