"""The stretches on several processes, each with a connection of its own; their findings come back in order."""

import gc
import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import psycopg
from psycopg import Connection

from events.checkpoint import VerifierKey
from events.crypto.sealing import MasterKeys
from statesvc.log.verify.archived_months import Archived
from statesvc.log.verify.batches import Stretch
from statesvc.log.verify.entries import SQL, Checked, check_stretch
from statesvc.log.verify.tree_range import Grown, Kept, check_tree

T = TypeVar("T")
_AHEAD: Final = 3
"""Stretches under way for each process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How a process gets at the log. `master_keys` None: sealed parts are not opened."""

    dsn: str = field(repr=False)
    master_keys: tuple[bytes, ...] | None = field(default=None, repr=False)
    archive: Path | None = None
    """The folder of archived months."""


@dataclass(slots=True)
class _Bench:
    connection: Connection[Any]
    master: MasterKeys | None
    archived: Archived


_bench: _Bench | None = None


def connect(dsn: str) -> Connection[Any]:
    """A connection that may take its time."""
    connection = psycopg.connect(dsn, autocommit=True, application_name="statesvc verify", prepare_threshold=None)
    connection.execute(SQL["session"])
    return connection


class Crew:
    """Runs a function on the arguments of many stretches."""

    def __init__(self, executor: ProcessPoolExecutor | None, processes: int) -> None:
        self._executor = executor
        self._ahead = processes * _AHEAD

    def each(self, function: Callable[..., T], calls: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        """The results in the order of the calls; a bounded number is under way."""
        if self._executor is None:
            yield from (function(*arguments) for arguments in calls)
            return
        under_way: deque[Future[T]] = deque()
        for arguments in calls:
            under_way.append(self._executor.submit(function, *arguments))
            if len(under_way) >= self._ahead:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()


@contextmanager
def crew(access: Access, processes: int) -> Iterator[Crew]:
    """For the time of the block. 1: the work is done in this process."""
    if processes == 1:
        _begin(access)
        try:
            yield Crew(None, 1)
        finally:
            _end()
        return
    # spawned, because the caller may have threads and connections that a fork would share
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(processes, mp_context=context, initializer=_begin_child, initargs=(access,))
    try:
        yield Crew(executor, processes)
    finally:
        executor.shutdown(cancel_futures=True)


def grow(begin: int, end: int, keys: Sequence[VerifierKey], origin: str, kept: Kept | None) -> Grown:
    """`check_tree` on this process's connection."""
    return check_tree(_at_work().connection, begin=begin, end=end, keys=keys, origin=origin, kept=kept)


def check(stretch: Stretch) -> Checked:
    """`check_stretch` on this process's connection."""
    bench = _at_work()
    return check_stretch(bench.connection, stretch, bench.master, bench.archived)


def _at_work() -> _Bench:
    if _bench is None:
        raise RuntimeError("this process was not begun by `crew`")
    return _bench


def _begin(access: Access) -> None:
    global _bench  # noqa: PLW0603 - what a process of the pool has lives as long as it
    master = MasterKeys(access.master_keys) if access.master_keys is not None else None
    connection = connect(access.dsn)
    _bench = _Bench(connection, master, Archived.read(connection, access.archive))


def _begin_child(access: Access) -> None:
    # rows and documents make no cycles, and looking for some among so many is a tenth of the work
    gc.disable()
    _begin(access)


def _end() -> None:
    global _bench  # noqa: PLW0603 - as above
    if _bench is not None:
        _bench.connection.close()
        _bench = None
