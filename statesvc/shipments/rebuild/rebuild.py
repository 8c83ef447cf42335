"""The rebuild of the shipment projection: prepare > fill in slices > catch up > swap; and the comparison, the rollback and the end."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from psycopg import AsyncConnection

from statesvc.background.bulk_pool import BulkPool
from statesvc.database.password_command import chosen_password_command
from statesvc.database.queries import queries
from statesvc.log.history import History
from statesvc.log.log_months import SHARE_MONTHS, LogMonth, months
from statesvc.shipments.rebuild.drift import Drift
from statesvc.shipments.rebuild.folding import begin, compare_slice, connect, fill_slice
from statesvc.shipments.rebuild.keyspace import EVENT_BYTES, Slice, slices
from statesvc.shipments.rebuild.spare_table import catch_up, forget, prepare, swap
from statesvc.shipments.rebuild.staging import Staging, staged

_SQL = queries("statesvc.shipments.rebuild", "rebuild")
Connection = AsyncConnection[Any]
Progress = Callable[[int, int, int], None]
"""`(slices done, slices, events)`."""
T = TypeVar("T")


class RebuildError(RuntimeError):
    """A rebuild can't be done now; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """`owner_dsn` leads past any pooler, as the role that owns the tables."""

    owner_dsn: str = field(repr=False)
    actor: str
    processes: int
    progress: Progress
    archive: History = field(default_factory=lambda: History(None))

    async def rebuild(self) -> int:
        """Build the projection anew and swap it in; return how many events it is made of."""
        async with self._alone() as connection:
            await prepare(connection)
            events = 0
            async for done, pieces, found in self._each(connection, fill_slice):
                events += found
                self.progress(done, pieces, events)
            await connection.execute(_SQL["analyze"])
            await catch_up(connection, self.archive)
            await swap(connection, self.archive, actor=self.actor, verb="rebuild", events=events)
            return events

    async def compare(self) -> tuple[int, list[Drift]]:
        """Return how many events there are, and the shipments whose live row is not what these add up to.

        Changes nothing, takes no lock.
        """
        connection = await connect(self.owner_dsn)
        try:
            events = 0
            drift: list[Drift] = []
            async for done, pieces, (found, differing) in self._each(connection, compare_slice):
                events += found
                drift += differing
                self.progress(done, pieces, events)
            return events, drift
        finally:
            await connection.close()

    async def roll_back(self) -> None:
        """Bring the old table up to date and put it back. The rebuilt one is retained in turn."""
        async with self._alone() as connection:
            if await _last_swap(connection) is None:
                raise RebuildError(
                    "there is nothing to go back to: no rebuild was swapped in, or its old table was let go"
                )
            await catch_up(connection, self.archive)
            await swap(
                connection, self.archive, actor=self.actor, verb="roll_back_rebuild", events=0
            )

    async def finish(self) -> None:
        """Drop the old table."""
        async with self._alone() as connection:
            await forget(connection)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[Connection]:
        connection = await connect(self.owner_dsn)
        try:
            row = await (await connection.execute(_SQL["try_lock"])).fetchone()
            if row != (True,):
                raise RebuildError("another rebuild is running")
            yield connection
            # the server's process, which has it, ends some time after the connection
            await connection.execute(_SQL["unlock"])
        finally:
            await connection.close()

    async def _each(
        self, connection: Connection, work: Callable[[Slice], T]
    ) -> AsyncIterator[tuple[int, int, T]]:
        # no month leaves the tables meanwhile
        await connection.execute(SHARE_MONTHS)
        archived = [month for month in await months(connection) if month.dropped_at is not None]
        row = await (await connection.execute(_SQL["bytes_of_log"])).fetchone()
        pieces = slices(
            (row[0] if row else 0) + EVENT_BYTES * sum(month.events or 0 for month in archived)
        )
        with (
            self._staged(archived, len(pieces)) as staging,
            BulkPool(
                min(self.processes, len(pieces)),
                begin,
                self.owner_dsn,
                staging,
                chosen_password_command(),
            ) as pool,
        ):
            pending: Sequence[asyncio.Future[T]] = [
                asyncio.wrap_future(pool.submit(work, piece)) for piece in pieces
            ]
            for future in pending:
                # where the first that fails ends the command, nobody asks for the others
                future.add_done_callback(_retrieve)
            try:
                for done, future in enumerate(asyncio.as_completed(pending), start=1):
                    yield done, len(pieces), await future
            finally:
                for future in pending:
                    future.cancel()

    def _staged(
        self, archived: Sequence[LogMonth], pieces: int
    ) -> AbstractContextManager[Staging | None]:
        if not archived:
            return nullcontext()
        return staged(
            [self.archive.path_of(month.file_name or "") for month in archived], pieces=pieces
        )


def _retrieve(future: asyncio.Future[Any]) -> None:
    """Retrieve the error: one that nobody asks for is logged when the future is forgotten."""
    if not future.cancelled():
        future.exception()


async def _last_swap(connection: Connection) -> tuple[datetime, str] | None:
    return await (await connection.execute(_SQL["last_swap"])).fetchone()
