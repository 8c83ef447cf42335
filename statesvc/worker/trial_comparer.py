"""Compares the results of foreign candidates with the effective readings, row by row.

```
asleep --a batch wrote trials--> [ compare results > pause ] --no trial is left--> asleep
```
No other work waits for it.
"""

import asyncio
from collections import defaultdict
from functools import partial
from typing import Any, Final

import structlog
from psycopg import AsyncConnection

from statesvc.background.waiting import set_within
from statesvc.reading.pending_trials import HandedOver, any_trial, forget_trials, lock_handed_over
from statesvc.reading.read_message import read_message
from statesvc.worker.batch_context import BatchContext
from statesvc.worker.trial_evidence import TrialKey, record_compared
from statesvc.worker.versions import ComparedTrial, Trial, compared

_AT_ONCE: Final = 32
_PAUSE_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 5.0
_YIELD_EVERY: Final = 8

log = structlog.get_logger()


class TrialComparer:
    """Runs until `stop`.

    `written` announces trials; the first pass looks for those of an earlier process.
    """

    def __init__(self, context: BatchContext) -> None:
        self._context = context
        self._stopping = asyncio.Event()
        self._woken = asyncio.Event()
        self._woken.set()

    def written(self) -> None:
        """Wake the comparer: a batch wrote trials."""
        self._woken.set()

    def stop(self) -> None:
        """End `run` after the comparison in progress."""
        self._stopping.set()
        self._woken.set()

    async def run(self) -> None:
        """Run until stopped, whatever fails."""
        while True:
            await self._woken.wait()
            if self._stopping.is_set():
                return
            pause = _PAUSE_SECONDS
            try:
                async with self._context.pool.connection() as connection:
                    while await compare_handed_over(self._context, connection):
                        pass
                    self._woken.clear()
                    if await any_trial(connection):
                        self._woken.set()
            except Exception:
                log.warning("trials_not_compared", exc_info=True)
                self._woken.set()
                pause = _RETRY_SECONDS
            await set_within(self._stopping, pause)


async def compare_handed_over(
    context: BatchContext, connection: AsyncConnection[Any], *, limit: int = _AT_ONCE
) -> int:
    """Compare, keep the evidence and delete the trials in a transaction; return their number."""
    async with connection.transaction():
        trials = await lock_handed_over(connection, limit=limit)
        tried: dict[TrialKey, list[ComparedTrial]] = defaultdict(list)
        for place, each in enumerate(trials, 1):
            result = _compared(context, each)
            if result is not None:
                tried[TrialKey.of(result.trial)].append(result)
            if place % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
        for key in sorted(tried):
            await record_compared(context, connection, key, tried[key])
        if trials:
            await forget_trials(connection, [each.trial_id for each in trials])
    return len(trials)


def _compared(context: BatchContext, each: HandedOver) -> ComparedTrial | None:
    """Compare a trial; None where the body is gone."""
    message, tried, carrier = (
        each.as_stable_read(),
        each.as_candidate_read(),
        context.carriers.get(each.carrier_id),
    )
    if message is None or carrier is None:
        return None
    read = partial(
        read_message, keyring=context.keyring, carriers=context.carriers, mappings=context.mappings
    )
    stable, candidate = read(message), None if tried is None else read(tried)
    return compared(
        Trial(message, each.stable or carrier.stable, each.candidate, takes_effect=False),
        stable,
        candidate,
        context.keyring,
    )
