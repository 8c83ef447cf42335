"""Evidence of candidates: their readings compared with the effective ones.

Best effort: it is no event.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Self

import structlog
from psycopg import AsyncConnection

from statesvc.background.waiting import set_within
from statesvc.health.notices import NoticeKind
from statesvc.reading.read_message import Read, read_message
from statesvc.reading.trials import (
    Evidence,
    HandedOver,
    any_trial,
    drop_trials,
    forget_trials,
    lock_handed_over,
    record_evidence,
)
from statesvc.worker.batch_context import BatchContext
from statesvc.worker.versions import ComparedTrial, Trial, compare, compared

log = structlog.get_logger()

_YIELD_EVERY: Final = 32


class TrialKey(NamedTuple):
    """The compared versions."""

    carrier_id: str
    stable: str
    candidate: str

    @classmethod
    def of(cls, trial: Trial) -> Self:
        return cls(trial.message.carrier_id, trial.stable, trial.candidate)


async def bound_trials(context: BatchContext, reads: Iterable[Read]) -> None:
    """Report a batch that wrote trials for a foreign candidate, and drop those beyond the bound."""
    carrier_ids = {read.carrier_id for read in reads if read.tried_on is not None}
    if not carrier_ids:
        return
    context.on_trials()
    try:
        async with context.pool.connection() as connection:
            await drop_trials(connection, carrier_ids, worker=context.worker)
    except Exception:
        log.warning("trials_not_dropped", exc_info=True)


async def record_trials(context: BatchContext, trials: Sequence[Trial]) -> None:
    """Compare and count the candidates' readings.

    Best effort: the messages have taken effect, and evidence is no event.
    """
    tried: dict[TrialKey, list[ComparedTrial]] = defaultdict(list)
    for place, trial in enumerate(trials, 1):
        if trial.failed:
            message = trial.message
            context.fallbacks.count(
                "candidate_failed", carrier=message.carrier_id, message_id=message.message_id
            )
        tried[TrialKey.of(trial)].append(
            compare(
                trial, keyring=context.keyring, carriers=context.carriers, mappings=context.mappings
            )
        )
        if place % _YIELD_EVERY == 0:
            await asyncio.sleep(0)
    for key, results in tried.items():
        try:
            async with context.pool.connection() as connection:
                await record_compared(context, connection, key, results)
        except Exception:
            log.warning(
                "evidence_lost", carrier=key.carrier_id, messages=len(results), exc_info=True
            )


async def record_compared(
    context: BatchContext,
    connection: AsyncConnection[Any],
    compared: TrialKey,
    results: Sequence[ComparedTrial],
) -> None:
    """Keep the evidence; the guard may set the share back to 0."""
    carrier_id, stable, candidate = compared
    evidence = Evidence(
        carrier_id=carrier_id,
        stable=stable,
        candidate=candidate,
        messages=len(results),
        errors=sum(result.failed for result in results),
        differing=sum(bool(result.differences) for result in results),
        found=[
            (result.trial.message.message_id, found)
            for result in results
            for found in result.differences
        ],
    )
    if await record_evidence(connection, evidence, worker=context.worker):
        log.error("rollout_turned_back", carrier=carrier_id)
        context.telemetry.notices.add(1, {"type": NoticeKind.REVERTED.value})


_AT_ONCE: Final = 32
_PAUSE_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 5.0
_COMPARED_YIELD_EVERY: Final = 8

log = structlog.get_logger()


class TrialComparer:
    """Compares the results of foreign candidates row by row, apart from all batches, until `stop`.

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
            if place % _COMPARED_YIELD_EVERY == 0:
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
