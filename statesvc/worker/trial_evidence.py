"""Evidence of candidates: their readings compared with the effective ones.

Best effort: it is no event.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, Self

import structlog
from psycopg import AsyncConnection

from statesvc.health.notices import NoticeKind
from statesvc.reading.pending_trials import drop_trials
from statesvc.reading.read_message import Read
from statesvc.reading.trials import Evidence, record_evidence
from statesvc.worker.batch_context import BatchContext
from statesvc.worker.versions import ComparedTrial, Trial, compare

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
    for compared, results in tried.items():
        try:
            async with context.pool.connection() as connection:
                await record_compared(context, connection, compared, results)
        except Exception:
            log.warning(
                "evidence_lost", carrier=compared.carrier_id, messages=len(results), exc_info=True
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
