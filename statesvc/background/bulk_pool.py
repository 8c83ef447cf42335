"""Processes for a command's long computation: at the lowest priority, and ended with the command.

```
command --calls--> process, in a session of its own, niceness 19, in idle time
        --end------^  a silent pipe: it ends when the command ends or gives up
```
Niceness counts within a session where the kernel groups by session, and a terminal's session is the
user's: hence a session of its own. So neither the terminal's Ctrl-C nor its hang-up reaches these
processes: the pipe does.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from statesvc.background.niceness import own_session, run_in_idle_time

# Lower than work after the ACK, too.
NICENESS: Final = 19

T = TypeVar("T")
# In a process of the pool: the error that `begin` raised.
_failures: list[Exception] = []


class BulkPool:
    """Processes for the time of a block; a failing block ends them at once.

    `begin`: run first in each process.
    """

    # those of `begin`
    def __init__(self, processes: int, begin: Callable[..., None], *arguments: Any) -> None:  # noqa: ANN401
        # spawned, because the caller may have threads and connections that a fork would share
        context = multiprocessing.get_context("spawn")
        self._theirs, self._end = context.Pipe(duplex=False)
        self._executor = ProcessPoolExecutor(
            processes,
            mp_context=context,
            initializer=_begin,
            initargs=(self._theirs, begin, *arguments),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        failed: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        # before the shutdown, which would wait for the work in progress
        if failed is not None:
            self.abandon()
        self._executor.shutdown(cancel_futures=True)
        self.abandon()
        self._theirs.close()

    # those of `work`
    def submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:  # noqa: ANN401
        """Run `work` in one of the processes. It fails with the error that `begin` raised there."""
        return self._executor.submit(_work, work, *arguments)

    def abandon(self) -> None:
        """End the processes at once; their work fails with BrokenProcessPool.

        Safe in any thread, and to call twice.
        """
        self._end.close()


# those of `begin`
def _begin(end: Connection, begin: Callable[..., None], *arguments: Any) -> None:  # noqa: ANN401
    # not in a process that leads a session already
    with suppress(PermissionError):
        own_session(niceness=NICENESS)
    run_in_idle_time()
    threading.Thread(target=_end_with, args=(end,), daemon=True, name="parent").start()
    try:
        begin(*arguments)
    except Exception as error:  # noqa: BLE001 - raised where somebody waits
        _failures.append(error)


def _work(work: Callable[..., T], *arguments: Any) -> T:  # noqa: ANN401 - those of `work`
    if _failures:
        raise _failures[0]
    return work(*arguments)


def _end_with(end: Connection) -> None:
    with suppress(EOFError, OSError):
        end.recv_bytes()
    # not sys.exit: this is a thread, and the computation would go on
    os._exit(1)
