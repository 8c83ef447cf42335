"""How a role lives and ends: readiness fails first, then its parts stop taking work, then they finish within the grace.

Between the first and the second a role that is called from outside goes on serving, until load balancers have noticed. A second
signal cuts everything short, at any point: what is in progress is cancelled and given back.
A part that ends by itself, or a helper task that dies, stops the whole process loudly: half a worker is worse than none,
because its supervisor restarts a dead one.
"""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog

from statesvc.background.waiting import set_within
from statesvc.roles.signals import StopSignals

_COLLECTED_AFTER: Final = (10_000, 20, 20)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Something that works until `stop`, which is quick, idempotent and may come before `run`."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]
    stop: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Farewell:
    """How long ending may take. `drain_seconds`: serving on, not ready any more; `grace_seconds`: finishing, after that."""

    grace_seconds: float
    drain_seconds: float = 0.0


async def live(
    parts: Sequence[Part], *, helpers: Iterable[asyncio.Task[None]], signals: StopSignals, drain: Callable[[], None], farewell: Farewell
) -> int:
    """Runs until told to stop; returns the exit code. `helpers` are tasks started elsewhere that must not end before."""
    # what was built so far lives as long as the process: no collection need look at it again
    gc.collect()
    gc.freeze()
    # nearly all garbage is freed without a collection: seven hundred new objects are no reason to look for more
    gc.set_threshold(*_COLLECTED_AFTER)
    tasks = [asyncio.create_task(part.run(), name=part.name) for part in parts]
    asked = asyncio.create_task(signals.stopping.wait(), name="stop-signal")
    done, _ = await asyncio.wait({*tasks, *helpers, asked}, return_when=asyncio.FIRST_COMPLETED)
    dead = [task for task in done if task is not asked]
    for task in dead:
        log.error("task_died", task=task.get_name(), exc_info=None if task.cancelled() else task.exception())
    asked.cancel()
    drain()
    if not dead:
        await set_within(signals.aborting, farewell.drain_seconds)
    for part in parts:
        part.stop()
    aborted = await _finish(tasks, signals=signals, grace_seconds=farewell.grace_seconds)
    return 1 if dead or aborted else 0


async def _finish(tasks: Sequence[asyncio.Task[None]], *, signals: StopSignals, grace_seconds: float) -> bool:
    """Waits for the tasks; those that are late are cancelled. True if a second signal cut it short."""
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
        await asyncio.wait(late, timeout=5)
    for task in running:
        if task.done() and not task.cancelled() and task.exception() is not None:
            log.error("task_failed_while_stopping", task=task.get_name(), exc_info=task.exception())
    return signals.aborting.is_set()
