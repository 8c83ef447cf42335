"""One leased batch from its claim to its verdict, whatever fails on the way."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

import structlog
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from events.errors import Cause
from statesvc.append.failures import RETRIES_MAX, Fault, again_seconds, classify, retry_seconds
from statesvc.append.passage import GiveWay, breathe
from statesvc.append.transaction import Applied, apply_claimed
from statesvc.inbox.claim import Burial, Deferral, Message, bury, retry
from statesvc.inbox.read_message import Read
from statesvc.inbox.rollouts.code_mapping import Mappings
from statesvc.inbox.rollouts.trials import Evidence, record_evidence
from statesvc.log.archive.log_archive import LogArchive
from statesvc.log.archive.log_archive_errors import ArchivedHistoryError
from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.names import Stage
from statesvc.worker.versions import Trial, Tried, compare, read_chosen

log = structlog.get_logger()

_READ_AT_ONCE: Final = 32
_ALONE_AFTER_RETRIES: Final = 2
_ATTEMPTS_TOLD: Final = 5
"""Attempts beyond it are counted together."""
Pool = AsyncConnectionPool[AsyncConnection[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What working on a batch needs."""

    pool: Pool
    keyring: Keyring
    carriers: Mapping[str, Carrier]
    telemetry: Telemetry
    worker: str
    mappings: Mappings = field(default_factory=Mappings)
    give_way: GiveWay = breathe
    archive: LogArchive = field(default_factory=lambda: LogArchive(None))


async def process(workshop: Workshop, messages: Sequence[Message], *, lease_ends: float) -> int:
    """Reads, applies and settles `messages` (all of one token). `lease_ends` on the monotonic clock. Returns how many changes to tell."""
    token = messages[0].token
    _count_attempts(workshop.telemetry, messages)
    await _refresh_mappings(workshop, lease_ends=lease_ends)
    with workshop.telemetry.stage(Stage.NORMALIZE, messages=len(messages)):
        reads: list[Read] = []
        burials: list[tuple[str, Burial]] = []
        trials: list[Trial] = []
        for place, message in enumerate(messages):
            outcome, trial = read_chosen(message, keyring=workshop.keyring, carriers=workshop.carriers, mappings=workshop.mappings)
            if trial is not None:
                trials.append(trial)
            if isinstance(outcome, Burial):
                burials.append((message.carrier_id, outcome))
            else:
                reads.append(outcome)
            if place % _READ_AT_ONCE == _READ_AT_ONCE - 1:
                await workshop.give_way()
    if burials:
        await _bury(workshop, token, burials, lease_ends=lease_ends)
    retries = {message.message_id: message.retries for message in messages}
    told = 0
    for together in _companies(reads, retries):
        told += await _apply(workshop, token, together, retries, lease_ends=lease_ends)
    if trials:
        await _judge(workshop, trials)
    return told


async def _refresh_mappings(workshop: Workshop, *, lease_ends: float) -> None:
    attempt = 0
    while True:
        try:
            async with workshop.pool.connection() as connection:
                await workshop.mappings.refresh(connection)
        except Exception as error:
            if classify(error) is Fault.PERMANENT or time.monotonic() + again_seconds(attempt) >= lease_ends:
                raise
            await asyncio.sleep(again_seconds(attempt))
            attempt += 1
        else:
            return


async def _judge(workshop: Workshop, trials: Sequence[Trial]) -> None:
    """Compares and counts what the candidates did. Best effort: the messages have taken effect, and evidence is no event."""
    tried: dict[tuple[str, str, str], list[Tried]] = defaultdict(list)
    for place, trial in enumerate(trials):
        tried[trial.message.carrier_id, trial.stable, trial.candidate].append(
            compare(trial, keyring=workshop.keyring, carriers=workshop.carriers, mappings=workshop.mappings)
        )
        if place % _READ_AT_ONCE == _READ_AT_ONCE - 1:
            await workshop.give_way()
    for (carrier_id, stable, candidate), results in tried.items():
        evidence = Evidence(
            carrier_id=carrier_id,
            stable=stable,
            candidate=candidate,
            messages=len(results),
            errors=sum(result.failed for result in results),
            differing=sum(bool(result.differences) for result in results),
            found=[(result.trial.message.message_id, found) for result in results for found in result.differences],
        )
        try:
            async with workshop.pool.connection() as connection:
                turned_back = await record_evidence(connection, evidence, worker=workshop.worker)
        except Exception:
            log.warning("evidence_lost", carrier=carrier_id, messages=len(results), exc_info=True)
            continue
        if turned_back:
            log.error("rollout_turned_back", carrier=carrier_id)


def _companies(reads: Sequence[Read], retries: Mapping[UUID, int]) -> Iterator[list[Read]]:
    """Which messages share a transaction: all, but for those that were given back again and again; each of these stands alone."""
    yield [read for read in reads if retries[read.message_id] < _ALONE_AFTER_RETRIES]
    for read in reads:
        if retries[read.message_id] >= _ALONE_AFTER_RETRIES:
            yield [read]


async def _apply(workshop: Workshop, token: UUID, reads: list[Read], retries: Mapping[UUID, int], *, lease_ends: float) -> int:
    attempt = 0
    while reads:
        try:
            with workshop.telemetry.stage(Stage.APPEND, messages=len(reads)):
                async with workshop.pool.connection() as connection:
                    applied = await _apply_whole(workshop, connection, reads, token)
            _count(workshop.telemetry, applied)
            return len(applied.changes)
        except Exception as error:
            match classify(error):
                case Fault.TRANSIENT if time.monotonic() + again_seconds(attempt) < lease_ends - 1:
                    log.warning("batch_failed_again", messages=len(reads), attempt=attempt, exc_info=True)
                    await asyncio.sleep(again_seconds(attempt))
                    attempt += 1
                case Fault.TRANSIENT:
                    await _give_back(workshop, token, reads, retries, error)
                    return 0
                case Fault.PERMANENT if len(reads) > 1:
                    log.warning("batch_taken_apart", messages=len(reads), exc_info=True)
                    half = len(reads) // 2
                    first = await _apply(workshop, token, reads[:half], retries, lease_ends=lease_ends)
                    return first + await _apply(workshop, token, reads[half:], retries, lease_ends=lease_ends)
                case Fault.PERMANENT:
                    log.exception("message_failed", message_id=str(reads[0].message_id), carrier=reads[0].carrier_id)
                    await _bury(workshop, token, [(reads[0].carrier_id, _failed(reads[0], error))], lease_ends=lease_ends)
                    return 0
    return 0


async def _apply_whole(workshop: Workshop, connection: AsyncConnection[Any], reads: Sequence[Read], token: UUID) -> Applied:
    """With the archived part of a history brought back where a late event needs it."""
    apply = partial(
        apply_claimed,
        connection,
        workshop.keyring,
        reads,
        token=token,
        worker=workshop.worker,
        timed=workshop.telemetry.stage,
        give_way=workshop.give_way,
    )
    try:
        return await apply()
    except ArchivedHistoryError as away:
        await workshop.archive.bring_back(connection, away.shipments)
    return await apply()


async def _bury(workshop: Workshop, token: UUID, burials: Sequence[tuple[str, Burial]], *, lease_ends: float) -> None:
    """Moves messages (with their carriers) to the dead letters; where that can't be done, the end of the lease hands them on."""
    attempt = 0
    while True:
        try:
            async with workshop.pool.connection() as connection:
                await bury(connection, token, [burial for _, burial in burials])
            break
        except Exception as error:
            pause = again_seconds(attempt)
            if classify(error) is Fault.PERMANENT or time.monotonic() + pause >= lease_ends:
                log.exception("burial_failed", messages=len(burials))
                return
            await asyncio.sleep(pause)
            attempt += 1
    for (carrier_id, cause), count in Counter((carrier_id, burial.cause) for carrier_id, burial in burials).items():
        workshop.telemetry.normalize_failures.add(count, {"carrier": carrier_id, "cause": cause.value})
        workshop.telemetry.messages_buried.add(count, {"carrier": carrier_id, "cause": cause.value})


def _failed(read: Read, error: BaseException) -> Burial:
    detail = f"{_named(error)} while its events were applied"
    return Burial(message_id=read.message_id, cause=Cause.NORMALIZER_FAILED, detail=detail, normalizer=read.normalizer)


def _named(error: BaseException) -> str:
    """An error by its type and SQLSTATE; its text may quote values."""
    sqlstate = getattr(error, "sqlstate", None)
    return f"{type(error).__name__}{f' (SQLSTATE {sqlstate})' if sqlstate else ''}"


async def _give_back(workshop: Workshop, token: UUID, reads: Sequence[Read], retries: Mapping[UUID, int], error: BaseException) -> None:
    """Best effort: where the database is still away, the end of the lease does the same. It buries a message beyond its budget."""
    deferrals = [
        Deferral(
            message_id=read.message_id,
            delay=timedelta(seconds=retry_seconds(retries[read.message_id])),
            error=_named(error),
            normalizer=read.normalizer,
        )
        for read in reads
    ]
    try:
        async with workshop.pool.connection() as connection:
            await retry(connection, token, deferrals)
    except Exception:
        log.warning("give_back_failed", messages=len(reads), exc_info=True)
        return
    for (carrier_id, spent), count in Counter((read.carrier_id, retries[read.message_id] >= RETRIES_MAX) for read in reads).items():
        if spent:
            workshop.telemetry.messages_buried.add(count, {"carrier": carrier_id, "cause": Cause.ATTEMPTS_EXHAUSTED.value})
        else:
            workshop.telemetry.messages_retried.add(count, {"carrier": carrier_id})


def _count_attempts(telemetry: Telemetry, messages: Sequence[Message]) -> None:
    numbers = Counter((message.carrier_id, message.attempts if message.attempts <= _ATTEMPTS_TOLD else "more") for message in messages)
    for (carrier_id, attempt), count in numbers.items():
        telemetry.message_attempts.add(count, {"carrier": carrier_id, "attempt": str(attempt)})


def _count(telemetry: Telemetry, applied: Applied) -> None:
    for (carrier_id, verdict), count in applied.carriers.items():
        telemetry.events.add(count, {"carrier": carrier_id, "verdict": verdict.value})
    for (carrier_id, empty), count in Counter((read.carrier_id, read.empty) for read in applied.held).items():
        telemetry.messages_settled.add(count, {"carrier": carrier_id, "outcome": "empty" if empty else "applied"})
    moves = Counter((c.row.proposal.event.carrier_id, c.to_status) for c in applied.changes if c.is_transition)
    for (carrier_id, status), count in moves.items():
        telemetry.transitions.add(count, {"carrier": carrier_id, "status": status})
    for (carrier_id, flag), count in applied.raised.items():
        telemetry.moves_contradicted.add(count, {"carrier": carrier_id, "flag": flag})
    if applied.notifications:
        telemetry.notifications_written.add(applied.notifications)
