"""The rebuild of the shipment projection: prepare > fill in slices > catch up > swap; and the
comparison, the rollback and the end.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar
from uuid import UUID

import psycopg
from psycopg import AsyncConnection

from statesvc.background.bulk_pool import BulkPool
from statesvc.database.password_command import chosen_password_command
from statesvc.database.queries import queries, send, uuids
from statesvc.database.sql_errors import Failure, failure
from statesvc.files.archive_folder import ArchivePath
from statesvc.log.actions import record_action
from statesvc.log.archived_files import archived_files
from statesvc.log.cluster import Cluster, open_cluster
from statesvc.log.history import History
from statesvc.log.json_compression import decompress_json
from statesvc.log.log_months import SHARE_MONTHS, months
from statesvc.shipments.rebuild.folding import (
    Drift,
    add_rows,
    begin,
    compare_slice,
    connect,
    fill_slice,
)
from statesvc.shipments.rebuild.staging import (
    EVENT_BYTES,
    Slice,
    packed,
    slice_at,
    slices,
    staged,
    unpacked,
)

_SQL = queries("statesvc.shipments.rebuild", "rebuild")
_NOTES: Final = 2_000
# Shipments that may be left to fold under the lock of the swap: some milliseconds.
_FEW: Final = 200
_PASSES_MAX: Final = 50
# No lock is asked for longer than a second, since traffic queues behind it; then it is asked for
# again.
_TRIES: Final = 60
Connection = AsyncConnection[Any]
# `(slices done, slices, events)`.
Progress = Callable[[int, int, int], None]
T = TypeVar("T")


class RebuildError(RuntimeError):
    """A rebuild is not possible now; the message gives the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """`owner_dsn` leads past any pooler, as the role that owns the tables."""

    owner_dsn: str = field(repr=False)
    actor: str
    processes: int
    progress: Progress
    master: str | None = None
    """Address of a cluster that compares."""
    archive: History = field(default_factory=lambda: History(None))

    async def rebuild(self) -> int:
        """Rebuild the projection and swap it in; return the number of events."""
        async with self._alone() as connection:
            await prepare(connection)
            events = 0
            async for done, pieces, found in self._each(connection, fill_slice):
                events += found
                self.progress(done, pieces, events)
            # before the swap: the first queries after it must not plan with the statistics of an
            # empty table
            await connection.execute(_SQL["analyze"])
            await catch_up(connection, self.archive)
            await swap(connection, self.archive, actor=self.actor, verb="rebuild", events=events)
            return events

    async def compare(self) -> tuple[int, list[Drift]]:
        """Return the number of events, and the shipments with a live row unlike their fold.

        Changes no row, takes no lock.
        """
        connection = await connect(self.owner_dsn)
        try:
            events = 0
            drift: list[Drift] = []
            compared = (
                self._each(connection, compare_slice)
                if self.master is None
                else self._each_on_cluster(connection, self.master)
            )
            async for done, pieces, (found, differing) in compared:
                events += found
                drift += differing
                self.progress(done, pieces, events)
            return events, drift
        finally:
            await connection.close()

    async def roll_back(self) -> None:
        """Bring the old table up to date and put it back. The rebuilt table is kept in turn."""
        async with self._alone() as connection:
            if await _last_swap(connection) is None:
                raise RebuildError(
                    "there is nothing to go back to: no rebuild was swapped in, or its old table"
                    " was let go"
                )
            await catch_up(connection, self.archive)
            await swap(
                connection, self.archive, actor=self.actor, verb="roll_back_rebuild", events=0
            )

    async def finish(self) -> None:
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
        files, pieces = await self._pieces(connection)
        with (
            staged(files, pieces=len(pieces)) if files else nullcontext() as staging,
            BulkPool(
                min(self.processes, len(pieces)),
                begin,
                self.owner_dsn,
                staging,
                chosen_password_command(),
            ) as pool,
        ):
            # all at once: the processes take the next slice themselves, and no slice waits for our
            # loop
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

    async def _each_on_cluster(
        self, connection: Connection, master: str
    ) -> AsyncIterator[tuple[int, int, tuple[int, list[Drift]]]]:
        files, pieces = await self._pieces(connection)
        command = chosen_password_command()
        with open_cluster(master, begin, self.owner_dsn, None, command) as cluster:
            compared = await asyncio.to_thread(
                list, compare_on_cluster(cluster, files, len(pieces))
            )
        for done, result in enumerate(compared, start=1):
            yield done, len(pieces), result

    async def _pieces(self, connection: Connection) -> tuple[list[ArchivePath], list[Slice]]:
        """Return the archived files, and the slices of the whole log."""
        # no month leaves the tables meanwhile
        await connection.execute(SHARE_MONTHS)
        archived = [month for month in await months(connection) if month.dropped_at is not None]
        row = await (await connection.execute(_SQL["bytes_of_log"])).fetchone()
        events = sum(month.events or 0 for month in archived)
        return (
            [self.archive.path_of(month.file_name or "") for month in archived],
            slices((row[0] if row else 0) + EVENT_BYTES * events),
        )


def _retrieve(future: asyncio.Future[Any]) -> None:
    """Retrieve the error; asyncio would log it when the future is forgotten."""
    if not future.cancelled():
        future.exception()


async def _last_swap(connection: Connection) -> tuple[datetime, str] | None:
    return await (await connection.execute(_SQL["last_swap"])).fetchone()


class BusyError(RuntimeError):
    """Other sessions held a lock for a minute, so no table was changed."""


async def prepare(connection: Connection) -> None:
    """Note changes from here on, and empty the spare table."""
    # in this order: a change whose note the emptying takes away has committed before
    # the first slice is read
    await _patiently(lambda: connection.execute(_SQL["watch"]))

    async def empty() -> None:
        async with connection.transaction():
            await connection.execute(_SQL["empty"])
            await connection.execute(_SQL["no_way_back"])

    await _patiently(empty)


async def catch_up(connection: Connection, archive: History) -> None:
    """Fold what changed meanwhile, until only a little is left or traffic is as fast as we are."""
    for _ in range(_PASSES_MAX):
        if await _take(connection, archive) <= _FEW:
            return


async def swap(
    connection: Connection, archive: History, *, actor: str, verb: str, events: int
) -> None:
    """Bring the spare table up to date and put it in the live one's place, in one transaction.

    Raises BusyError.
    """

    async def swapped() -> None:
        async with connection.transaction():
            await connection.execute(_SQL["lock_live"])
            # under the lock, so no new notes come
            while await _take(connection, archive):
                pass
            await connection.execute(_SQL["swap"])
            await connection.execute(_SQL["unwatch_spare"])
            await connection.execute(_SQL["watch"])
            await connection.execute(_SQL["note_swap"], {"actor": actor, "events": events})
            await record_action(
                connection,
                actor=actor,
                verb=verb,
                target="projection shipment",
                details={"events": events},
            )

    await _patiently(swapped)


async def forget(connection: Connection) -> None:
    """Give up the way back: no more notes, no old table."""

    async def ended() -> None:
        async with connection.transaction():
            await connection.execute(_SQL["unwatch"])
            await connection.execute(_SQL["empty"])
            await connection.execute(_SQL["no_way_back"])

    await _patiently(ended)


async def _take(connection: Connection, archive: History) -> int:
    """Fold some of the noted shipments again; return how many they were.

    Notes and rows change together.
    """
    async with connection.transaction():
        asked = await send(
            connection,
            _SQL["take_notes"],
            {"limit": _NOTES},
            lambda rows: [shipment_id for (shipment_id,) in rows],
        )
        touched: list[UUID] = await asked.rows()
        if touched:
            # a late event of an archived shipment needs its history, which is in the files
            await archive.restore_shipments(connection, touched)
            histories = await send(
                connection, _SQL["histories"], {"shipment_ids": uuids(touched)}, _histories
            )
            await connection.execute(_SQL["remove"], {"shipment_ids": uuids(touched)})
            await add_rows(connection, await histories.rows())
        return len(touched)


def _histories(rows: Iterable[Any]) -> list[tuple[UUID, bytes]]:
    return [(shipment_id, decompress_json(canonical)) for shipment_id, canonical in rows]


async def _patiently(action: Callable[[], Awaitable[T]]) -> T:
    for _ in range(_TRIES):
        try:
            return await action()
        except psycopg.Error as error:
            if failure(error) is not Failure.TRANSIENT:
                raise
        # so as not to meet the same traffic again
        await asyncio.sleep(random.uniform(0.3, 1.0))  # noqa: S311
    raise BusyError(
        "the tables are too busy: no lock within a minute; a long transaction is in the way"
        " (pg_stat_activity shows it)"
    )


# Groups of a file that are read at once: half a million entries.
_GROUPS: Final = 64


def compare_on_cluster(
    cluster: Cluster, files: Sequence[ArchivePath], slices: int
) -> Iterator[tuple[int, list[Drift]]]:
    """Compare on a cluster: each archived event goes to the slice of its shipment."""
    # some groups a call, not a file: files of months are of very different sizes
    calls = [(path, first, slices) for path in files for first in range(0, _groups(path), _GROUPS)]
    return cluster.shuffled(_spread, calls, slices, partial(_fold, slices))


def _groups(path: ArchivePath) -> int:
    with archived_files().open_file(path) as file:
        return len(file.groups)


def _spread(path: ArchivePath, first: int, slices: int) -> Iterator[tuple[int, bytes]]:
    with archived_files().open_file(path) as file:
        for events in file.histories(first, first + _GROUPS):
            yield from packed(events, slices)


def _fold(slices: int, place: int, contents: list[bytes]) -> tuple[int, list[Drift]]:
    piece = slice_at(place, slices)
    archived = chain.from_iterable(unpacked(content, piece) for content in contents)
    return compare_slice(piece, archived)
