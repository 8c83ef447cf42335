"""Shutdown of a process: readiness fails first, then its parts stop taking work, then they finish
within the grace period.

SIGTERM and SIGINT ask for it, and so do a terminal that closes (SIGHUP) and the death of the
supervisor. Between the first and the second step a role that is called from outside goes on
serving, until load balancers have noticed. A second signal cuts everything short, at any point:
what is in progress is cancelled and given back. A part that ends by itself, or a helper task that
dies, stops the whole process with an error: half a worker is worse than none, because its
supervisor restarts a dead one.
"""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog

from statesvc.background.waiting import set_within

# Set by the supervisor: standard input is then a pipe that closes when the supervisor dies, however
# it dies.
SUPERVISED_VARIABLE: Final = "STATESVC_SUPERVISED"
GC_THRESHOLDS: Final = (200_000, 20, 20)

log = structlog.get_logger()


class StopSignals:
    """The first signal asks to stop, the second to stop at once."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.aborting = asyncio.Event()

    def listen(self) -> None:
        """Take over the signals of this process, and watch its supervisor if it has one."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.ask, number.name.lower())
        # who ignores it wants to outlive the terminal (`nohup`)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        # a pipe, not a signal: it also closes when the supervisor is killed
        if os.environ.get(SUPERVISED_VARIABLE):
            loop.add_reader(sys.stdin.fileno(), self._read_supervisor_pipe)

    def ask(self, reason: str) -> None:
        """Ask to stop, as a signal does; asked again: to stop at once."""
        if self.stopping.is_set():
            log.warning("aborting", reason=reason)
            self.aborting.set()
        else:
            log.info("stopping", reason=reason)
            self.stopping.set()

    def _hang_up(self) -> None:
        """Stop at a hang-up; shell and kernel both send it, so a second must not abort."""
        if not self.stopping.is_set():
            self.ask("sighup")

    def _read_supervisor_pipe(self) -> None:
        if not os.read(sys.stdin.fileno(), 1024):
            # at its end a pipe stays readable: the loop would spin
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self.ask("supervisor_died")


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Something that works until `stop`, which is quick, idempotent and may come before `run`."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]
    stop: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownTimes:
    """Time limits of stopping.

    `drain_seconds`: serving on, not ready any more; `grace_seconds`: finishing, after that.
    """

    grace_seconds: float
    drain_seconds: float = 0.0


async def run_until_stopped(
    parts: Sequence[Component],
    *,
    helpers: Iterable[asyncio.Task[None]],
    signals: StopSignals,
    drain: Callable[[], None],
    times: ShutdownTimes,
) -> int:
    """Run until it is asked to stop; return the exit code.

    `helpers` are tasks started elsewhere that must not end before.
    """
    # what was built so far lives as long as the process: no collection needs to visit it again
    gc.collect()
    gc.freeze()
    # reference counting frees nearly all garbage, and a worker's batch is a hundred thousand
    # objects that are all in use: the default, seven hundred new ones, would search them repeatedly
    gc.set_threshold(*GC_THRESHOLDS)
    tasks = [asyncio.create_task(part.run(), name=part.name) for part in parts]
    stop_requested = asyncio.create_task(signals.stopping.wait(), name="stop-signal")
    done, _ = await asyncio.wait(
        # helpers too: a worker whose listener died would sleep from sweep to sweep
        {*tasks, *helpers, stop_requested},
        return_when=asyncio.FIRST_COMPLETED,
    )
    dead = [task for task in done if task is not stop_requested]
    for task in dead:
        log.error(
            "task_died",
            task=task.get_name(),
            exc_info=None if task.cancelled() else task.exception(),
        )
    stop_requested.cancel()
    # before the parts stop: a load balancer must see it while requests are still served
    drain()
    # a process with a dead part stops at once: what it would serve meanwhile may be wrong
    if not dead:
        await set_within(signals.aborting, times.drain_seconds)
    for part in parts:
        part.stop()
    aborted = await _finish(tasks, signals=signals, grace_seconds=times.grace_seconds)
    return 1 if dead or aborted else 0


async def _finish(
    tasks: Sequence[asyncio.Task[None]], *, signals: StopSignals, grace_seconds: float
) -> bool:
    """Wait for the tasks; those that are late are cancelled.

    Return True if a second signal cut it short.
    """
    running = [task for task in tasks if not task.done()]
    if not running:
        return signals.aborting.is_set()
    finished = asyncio.ensure_future(asyncio.wait(running, timeout=grace_seconds))
    abort = asyncio.create_task(signals.aborting.wait(), name="abort-signal")
    await asyncio.wait({finished, abort}, return_when=asyncio.FIRST_COMPLETED)
    abort.cancel()
    finished.cancel()
    late = [task for task in running if not task.done()]
    for task in late:
        log.error("task_did_not_stop", task=task.get_name(), grace_seconds=grace_seconds)
        task.cancel("the grace time is over")
    if late:
        # cancelled tasks still give their leases back; without a bound one of them could hold the
        # process
        await asyncio.wait(late, timeout=5)
    for task in running:
        if task.done() and not task.cancelled() and task.exception() is not None:
            log.error("task_failed_while_stopping", task=task.get_name(), exc_info=task.exception())
    return signals.aborting.is_set()
