"""The ranges on several processes, or on a cluster, each with a connection of its own; their
findings come back in order.
"""

import gc
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from psycopg import Connection

from events.crypto.sealing import MasterKeys
from statesvc.addons.verify.archived_months import ArchivedMonths
from statesvc.addons.verify.batches import BatchRange
from statesvc.addons.verify.entries import SQL, CheckedBatches, check_batches
from statesvc.addons.verify.event_ids import Digests, read_digests
from statesvc.addons.verify.fault import LogFault
from statesvc.addons.verify.message_rows import may_read_messages
from statesvc.addons.verify.tree import HeadRules, TreeRange, check_tree
from statesvc.background.bulk_pool import BulkPool
from statesvc.database.open_connection import open_sync_connection
from statesvc.database.password_command import choose_password_command, chosen_password_command
from statesvc.database.server_niceness import lower_priority
from statesvc.files.archive_folder import ArchivePath
from statesvc.log.cluster import Cluster, open_cluster

T = TypeVar("T")
# Ranges under way for each process.
_AHEAD: Final = 3


class AbandonedError(RuntimeError):
    """The caller waits no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAccess:
    """Access of a process to the log. `master_keys` None: sealed parts are not opened."""

    dsn: str = field(repr=False)
    master_keys: tuple[bytes, ...] | None = field(default=None, repr=False)
    archive: ArchivePath | None = None


@dataclass(slots=True)
class _ProcessState:
    connection: Connection[Any]
    master: MasterKeys | None
    archived: ArchivedMonths
    digests: Digests | None
    reads_messages: bool


_state: _ProcessState | None = None


def connect(dsn: str) -> Connection[Any]:
    """Open a connection that may take its time."""
    connection = open_sync_connection(dsn, application_name="statesvc verify", writes=False)
    connection.execute(SQL["session"])
    return connection


class WorkerPool:
    """Runs a function on the arguments of many ranges."""

    def __init__(self, pool: BulkPool | None, processes: int) -> None:
        self._pool = pool
        self._ahead = processes * _AHEAD
        self._is_abandoned = False

    def each(self, function: Callable[..., T], calls: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        """Yield the results in the order of the calls; a bounded number is under way."""
        if self._pool is None:
            for arguments in calls:
                if self._is_abandoned:
                    raise AbandonedError
                yield function(*arguments)
            return
        under_way: deque[Future[T]] = deque()
        for arguments in calls:
            under_way.append(self._pool.submit(function, *arguments))
            # bounded: results wait in memory for their turn
            if len(under_way) >= self._ahead:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()

    def abandon(self) -> None:
        """Cancel running work by an error. Safe in any thread."""
        self._is_abandoned = True
        if self._pool is not None:
            self._pool.abandon()


@contextmanager
def worker_pool(
    access: LogAccess, processes: int, master: str | None
) -> Iterator[WorkerPool | Cluster]:
    """Open a pool for the time of the block. 1: the work is done in this process."""
    if master is not None:
        with open_cluster(master, _begin_child, access, chosen_password_command()) as cluster:
            yield cluster
        return
    if processes == 1:
        _begin(access)
        try:
            yield WorkerPool(None, 1)
        finally:
            _end()
        return
    with BulkPool(processes, _begin_child, access, chosen_password_command()) as pool:
        # the first call starts them: while the caller reads what it needs itself
        pool.submit(os.getpid)
        yield WorkerPool(pool, processes)


def check_file(place: int) -> list[LogFault]:
    """Check the files of a month as wholes."""
    return list(_this_process().archived.faults(place))


def check_leaf_range(begin: int, end: int, rules: HeadRules) -> TreeRange:
    """Run `check_tree` on this process's connection."""
    return check_tree(_this_process().connection, begin=begin, end=end, rules=rules)


def check_batch_range(batch_range: BatchRange) -> CheckedBatches:
    """Run `check_batches` on this process's connection."""
    bench = _this_process()
    return check_batches(
        bench.connection,
        batch_range,
        bench.master,
        bench.archived,
        bench.digests,
        reads_messages=bench.reads_messages,
    )


def _this_process() -> _ProcessState:
    if _state is None:
        raise RuntimeError("this process was not begun by `worker_pool`")
    return _state


def _begin(access: LogAccess) -> None:
    global _state  # noqa: PLW0603 - what a process of the pool has lives as long as it
    master = MasterKeys(access.master_keys) if access.master_keys is not None else None
    connection = connect(access.dsn)
    _state = _ProcessState(
        connection,
        master,
        ArchivedMonths.read(connection, access.archive),
        read_digests(connection, master),
        may_read_messages(connection),
    )


def _begin_child(access: LogAccess, password_command: str | None) -> None:
    choose_password_command(password_command)
    # rows and documents make no cycles, and searching for some among that many is a tenth of the
    # work
    gc.disable()
    _begin(access)
    lower_priority(_this_process().connection)


def _end() -> None:
    global _state  # noqa: PLW0603 - as above
    if _state is not None:
        _state.connection.close()
        _state = None
