"""A bounded pool of processes for computations that would occupy an event loop.

```
call --> waits for a free process (bounded) --> a frame there, a frame back --> the process is free
            +-- it dies, or the caller gives up: the process is killed, the next call gets another
```
Processes start when needed and end when idle. A caller that gives up does not stop a start, and the
next call gets that process. Otherwise a machine on which the start takes longer than callers wait
would restart it for each of them, and never answer.

A process works on a single call at a time, so that its death is the failure of that call alone.
Frames are pickles between a process and its own child: no other process can write to these pipes. A
child ends itself when its parent is gone.
"""

import asyncio
import os
import pickle
import struct
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import structlog

from statesvc.background.niceness import own_session, run_in_idle_time

IDLE_SECONDS: Final = 300.0
_SIZE: Final = struct.Struct(">Q")
# Signals that a process can take a call.
_GREETING: Final = b"\n"
# Lower than everything else: an answer takes seconds anyway.
_NICENESS: Final = 19

Task = Callable[[Any], Awaitable[object]]

log = structlog.get_logger()


class ProcessDiedError(RuntimeError):
    """The process ended in the middle of the call."""


class PoolFullError(RuntimeError):
    """Too many calls wait already."""


class ProcessPool:
    """`command` starts a process that calls `serve_tasks`.

    Safe to close twice, and before the first call.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        processes_max: int,
        waiting_max: int,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._command = command
        self._waiting_max = waiting_max
        self._idle_seconds = idle_seconds
        self._free = asyncio.Semaphore(processes_max)
        self._idle: deque[tuple[float, _ChildTask]] = deque()
        self._busy: set[_ChildTask] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._retiring: asyncio.TimerHandle | None = None
        self.waiting = 0

    @property
    def busy(self) -> int:
        """Processes that work on a call."""
        return len(self._busy)

    # what the task answers
    async def call(self, task: str, argument: object) -> Any:  # noqa: ANN401
        """Return the task's answer, or raise its error. Raises PoolFullError, ProcessDiedError."""
        if self.waiting >= self._waiting_max:
            raise PoolFullError(f"{self.waiting} calls wait already")
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        try:
            return await self._call(task, argument)
        finally:
            self._free.release()

    async def _call(self, task: str, argument: object) -> object:
        # after the semaphore: at most as many processes as calls under way
        child = self._idle_child() or await _ChildTask.start(self._command)
        self._busy.add(child)
        try:
            await child.started()
            raised, answer = await child.ask(task, argument)
        except BaseException as error:
            # whoever stops waiting does not want the rest; one that is still starting
            # has nothing of the call
            (self._keep if child.is_starting else self._end)(child)
            if isinstance(error, ProcessDiedError):
                log.exception("computing_process_died", task=task, pid=child.pid)
            raise
        finally:
            self._busy.discard(child)
        self._keep(child)
        if raised:
            raise answer
        return answer

    def _idle_child(self) -> "_ChildTask | None":
        """Return the process that worked last; one that died meanwhile fails no call."""
        while self._idle:
            # the last one: the others grow old and are retired
            _, child = self._idle.pop()
            if not child.is_gone:
                return child
            self._end(child)
        return None

    def _keep(self, child: "_ChildTask") -> None:
        loop = asyncio.get_running_loop()
        self._idle.append((loop.time() + self._idle_seconds, child))
        if self._retiring is None:
            self._retiring = loop.call_later(self._idle_seconds, self._retire)

    async def close(self) -> None:
        if self._retiring is not None:
            self._retiring.cancel()
        children = [*self._busy, *(child for _, child in self._idle)]
        self._idle.clear()
        for child in children:
            self._end(child)
        await asyncio.gather(*self._ending)

    def _end(self, child: "_ChildTask") -> None:
        """Kill it, and wait in the background until it and its pipes are gone."""
        child.kill()
        task = asyncio.create_task(child.ended(), name=f"computing-{child.pid}-ends")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _retire(self) -> None:
        """End processes that have been idle for long.

        Calls take the process that worked last, so that the others become idle.
        """
        loop = asyncio.get_running_loop()
        while self._idle and self._idle[0][0] <= loop.time():
            self._end(self._idle.popleft()[1])
        self._retiring = loop.call_at(self._idle[0][0], self._retire) if self._idle else None


class _ChildTask:
    def __init__(
        self, process: Process, requests: asyncio.StreamWriter, answers: asyncio.StreamReader
    ) -> None:
        self._process = process
        self._requests = requests
        self._answers = answers
        self.pid = process.pid
        self._starting = asyncio.create_task(
            self._read_greeting(), name=f"computing-{process.pid}-starts"
        )
        # nobody may wait for it
        self._starting.add_done_callback(
            lambda starting: starting.cancelled() or starting.exception()
        )

    @classmethod
    async def start(cls, command: Sequence[str]) -> "_ChildTask":
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the process has no pipes")
        return cls(process, process.stdin, process.stdout)

    @property
    def is_gone(self) -> bool:
        if self._process.returncode is None:
            try:
                os.kill(self.pid, 0)
            except ProcessLookupError:
                # its end is known to the system, and in a moment to asyncio
                return True
        return self._process.returncode is not None

    @property
    def is_starting(self) -> bool:
        return not self._starting.done()

    async def started(self) -> None:
        """Wait until it can take a call. Raises ProcessDiedError.

        Cancelling the wait does not stop the start.
        """
        await asyncio.shield(self._starting)

    async def _read_greeting(self) -> None:
        try:
            await self._answers.readexactly(len(_GREETING))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise ProcessDiedError("the process ended while it started") from None

    async def ask(self, task: str, argument: object) -> tuple[bool, Any]:
        """Return whether the task raised, and its answer or error."""
        frame = pickle.dumps((task, argument))
        try:
            self._requests.write(_SIZE.pack(len(frame)) + frame)
            await self._requests.drain()
            # the length first: a pickle does not tell where it ends on a pipe
            (size,) = _SIZE.unpack(await self._answers.readexactly(_SIZE.size))
            # our own child
            answer: tuple[bool, Any] = pickle.loads(await self._answers.readexactly(size))  # noqa: S301
        except (asyncio.IncompleteReadError, ConnectionError):
            raise ProcessDiedError("the process that computed this ended") from None
        return answer

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    async def ended(self) -> None:
        await self._process.wait()
        self._requests.close()
        with suppress(ConnectionError):
            await self._requests.wait_closed()


def serve_tasks(tasks: Mapping[str, Task]) -> Callable[[], Awaitable[None]]:
    """Return the child's main coroutine: it answers calls until its parent is gone.

    Call it before any output is printed.
    """
    # stdout carries the answers: from here on, prints of any library go to stderr
    answers = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # a Ctrl-C in the terminal is for the parent
    own_session(niceness=_NICENESS)
    run_in_idle_time()

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        calls: asyncio.Queue[bytes] = asyncio.Queue()
        _write(answers, _GREETING)
        # a thread: a computation blocks the loop, and must still end with its parent
        threading.Thread(target=_listen, args=(loop, calls), daemon=True, name="parent").start()
        while True:
            task, argument = pickle.loads(await calls.get())  # noqa: S301 - from our own parent
            frame = await _answer(tasks[task], argument)
            _write(answers, _SIZE.pack(len(frame)) + frame)

    return serve


def _listen(loop: asyncio.AbstractEventLoop, calls: asyncio.Queue[bytes]) -> None:
    """Read calls, in a thread: the parent's end is noticed even during a call."""
    requests = sys.stdin.buffer
    while len(head := requests.read(_SIZE.size)) == _SIZE.size:
        (size,) = _SIZE.unpack(head)
        loop.call_soon_threadsafe(calls.put_nowait, requests.read(size))
    # the parent is gone; sys.exit would end this thread only
    os._exit(1)


async def _answer(task: Task, argument: object) -> bytes:
    try:
        return pickle.dumps((False, await task(argument)))
    except Exception as error:
        frame = pickle.dumps((True, error))
        with suppress(Exception):
            pickle.loads(frame)  # noqa: S301 - does it survive?
            return frame
        log.exception("computing_failed")
        return pickle.dumps((True, RuntimeError(f"{type(error).__name__} in a computing process")))


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        # a pipe takes as much as it has room for
        view = view[os.write(descriptor, view) :]
