"""Group commit: messages that arrive together share one round trip and one flush to disk.

    put -> waiting -> a free lane takes what is there (bounded in rows and bytes) -> one transaction
        -> its commit is durable: all are answered, and workers are woken

Nothing waits for a group to fill: a single message is stored at once, and while a lane is busy the
next group grows. Large bodies have a queue and a lane of their own, so no small one waits behind
megabytes; while small ones come, that lane rests most of the time, because they share processor,
log and disk. If the database refuses a row, the group is halved until that row fails alone. A
message stays in its group even if its caller stops waiting. An unknown outcome is answered as not
stored; the carrier's retry is recognised by its digest.

With a spool, what the database does not take in time is kept there under the same id, and stored by
the drain; a message that the database stored without an answer is then one message.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import psycopg
import structlog
from psycopg import AsyncConnection

from statesvc.bodies.sealed_message import SealedMessage, put_columns
from statesvc.database.breaker import DatabaseBreaker
from statesvc.database.pool import Pool
from statesvc.database.queries import queries
from statesvc.database.sql_errors import Failure, failure
from statesvc.database.wakeups.wakeup import INBOX, Wakes
from statesvc.ingress.body_memory import SMALL_BYTES, MemoryBound, ReservedMemory
from statesvc.spool.spooling import ANSWER_SECONDS, Spooling

_SQL = queries("statesvc.ingress", "group_commit")
_log = structlog.get_logger()

# Bytes that a waiting message takes in memory besides its body.
ROW_BYTES: Final = 2048


class Refusal(StrEnum):
    """Reason for which a message was not stored, or is not known to be."""

    DATABASE_AWAY = "database_away"
    """No connection, or lost before the answer: it may be stored."""
    TOO_SLOW = "too_slow"
    """No answer within the deadline: it may be stored."""
    OVERLOADED = "overloaded"
    """Too many bytes wait already."""
    ROW_REFUSED = "row_refused"
    """The database refuses this row."""
    NOT_STORED = "not_stored"
    """The transaction failed and was rolled back."""
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class Stored:
    """The message is in the inbox, or was. A byte-identical retry has the first message's id."""

    message_id: UUID
    duplicate: bool


Outcome = Stored | Refusal
_TO_SPOOL: Final = frozenset({Refusal.DATABASE_AWAY, Refusal.TOO_SLOW, Refusal.NOT_STORED})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """Bounds of groups and of waiting. `lanes`: for small bodies; large bodies have another.

    While a lane is busy, another starts only for `further_lane_rows_min` waiting messages:
    fewer are cheaper as one group of the busy lane, about one flush later.
    """

    lanes: int = 3
    further_lane_rows_min: int = 16
    group_rows_max: int = 256
    group_bytes_max: int = 4 * 1024 * 1024
    large_group_bytes_max: int = 1024 * 1024
    large_rest: float = 3.0
    """Rest of the lane of large bodies after a group, next to small ones: as a multiple of the time
    that the group took.
    """
    large_rest_seconds_max: float = 0.06
    deadline_seconds: float = 2.0
    large_deadline_seconds: float = 10.0
    spooled_after_seconds: float = ANSWER_SECONDS
    """With a spool: longest wait for the database. A large body waits on while the database answers
    others.
    """


@dataclass(slots=True)
class _Waiting:
    message: SealedMessage
    answer: asyncio.Future[Outcome]
    held: ReservedMemory
    spooled: bool = False

    def resolve(self, outcome: Outcome) -> None:
        if not self.answer.done():
            self.answer.set_result(outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A queue of messages and its lanes; `idle`: a future for each idle lane."""

    lanes: int
    rows_max: int
    bytes_max: int
    waiting: deque[_Waiting] = field(default_factory=deque)
    idle: deque[asyncio.Future[None]] = field(default_factory=deque)

    def wake_one(self) -> None:
        while self.idle:
            idle = self.idle.popleft()
            if not idle.done():
                idle.set_result(None)
                return

    def take_group(self) -> list[_Waiting]:
        group: list[_Waiting] = []
        bytes_left = self.bytes_max
        while self.waiting and len(group) < self.rows_max:
            size = self.waiting[0].message.body_bytes
            if group and size > bytes_left:
                break
            bytes_left -= size
            group.append(self.waiting.popleft())
        return group

    def refuse(self, refusal: Refusal) -> None:
        while self.waiting:
            waiting = self.waiting.popleft()
            waiting.resolve(refusal)
            waiting.held.release()


class GroupCommit:
    """Stores messages through a few lanes. `put` may be called from any number of tasks of the same
    loop.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        memory: MemoryBound,
        limits: GroupLimits | None = None,
        breaker: DatabaseBreaker | None = None,
        waker: Wakes | None = None,
        spooling: Spooling | None = None,
    ) -> None:
        self._pool = pool
        self._waker = waker
        self._spooling = spooling
        self._answered_at = float("-inf")
        self._memory = memory
        self._limits = limits = GroupLimits() if limits is None else limits
        if spooling is not None:
            breaker = spooling.breaker
        self.breaker = DatabaseBreaker() if breaker is None else breaker
        self._small = _Line(
            lanes=limits.lanes, rows_max=limits.group_rows_max, bytes_max=limits.group_bytes_max
        )
        self._large = _Line(
            lanes=1, rows_max=limits.group_rows_max, bytes_max=limits.large_group_bytes_max
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._small_groups = 0
        self._stopping = False

    @property
    def tasks(self) -> Sequence[asyncio.Task[None]]:
        """The lanes' tasks, and the spool's, so that their owner notices when one ends."""
        return [*self._tasks, *([] if self._spooling is None else self._spooling.tasks)]

    async def start(self) -> None:
        """Start the lanes; each takes a connection of the pool for as long as a group needs."""
        if not self._tasks:
            lines = [*[self._small] * self._small.lanes, self._large]
            self._tasks = [
                asyncio.create_task(self._run(line), name=f"ingress-lane-{number}")
                for number, line in enumerate(lines)
            ]

    async def stop(self, *, grace_seconds: float) -> None:
        """Accept no more, store waiting messages within the grace, then close.

        Safe to call twice.
        """
        self._stopping = True
        for line in (self._small, self._large):
            while line.idle:
                line.wake_one()
        tasks, self._tasks = self._tasks, []
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace_seconds)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        self._refuse_waiting(Refusal.STOPPING)

    async def put(self, message: SealedMessage, held: ReservedMemory | None = None) -> Outcome:
        """Store a message; return once it is durable, or why that is not known.

        `held`: the memory that the body has taken, released here; without it, it is taken now.
        """
        if self._spooling is None:
            return await self._put(message, held)
        self._spooling.pushes += 1
        outcome = await self._put(message, held)
        if outcome not in _TO_SPOOL:
            return outcome
        kept_id = await self._spooling.keep(message)
        if kept_id is None:
            return outcome
        return Stored(kept_id, duplicate=kept_id != message.message_id)

    async def _put(self, message: SealedMessage, held: ReservedMemory | None) -> Outcome:
        loop = asyncio.get_running_loop()
        refusal = self._refusal(loop.time())
        if held is None:
            held = ReservedMemory(self._memory)
            if refusal is None and not held.take(message.body_bytes + ROW_BYTES):
                refusal = Refusal.OVERLOADED
        if refusal is not None:
            held.release()
            return refusal
        waiting = _Waiting(message, loop.create_future(), held)
        line = self._large if message.body_bytes > SMALL_BYTES else self._small
        line.waiting.append(waiting)
        all_lanes_idle = len(line.idle) == line.lanes
        if all_lanes_idle or len(line.waiting) >= self._limits.further_lane_rows_min:
            line.wake_one()
        is_large = line is self._large
        seconds = self._limits.large_deadline_seconds if is_large else self._limits.deadline_seconds
        if self._spooling is not None:
            return await self._put_or_spool(waiting, loop.time() + seconds, is_large=is_large)
        try:
            async with asyncio.timeout(seconds):
                return await waiting.answer
        except TimeoutError:
            if not is_large:
                # a large one may only have waited for others like it
                self.breaker.failed(loop.time())
            return Refusal.TOO_SLOW

    async def _put_or_spool(self, waiting: _Waiting, until: float, *, is_large: bool) -> Outcome:
        """Wait for the database as long as it answers in time, then leave the message to the
        spool.
        """
        loop, patience = asyncio.get_running_loop(), self._limits.spooled_after_seconds
        while True:
            await asyncio.wait([waiting.answer], timeout=patience)
            if waiting.answer.done():
                return waiting.answer.result()
            now = loop.time()
            if is_large and now < until and now - self._answered_at < patience:
                continue
            waiting.spooled = True
            waiting.held.release()
            if now - self._answered_at >= patience or not is_large:
                self.breaker.failed(now)
                self._refuse_waiting(Refusal.DATABASE_AWAY)
            return Refusal.TOO_SLOW

    def _refusal(self, now: float) -> Refusal | None:
        if self._stopping:
            return Refusal.STOPPING
        return None if self.breaker.lets_through(now) else Refusal.DATABASE_AWAY

    async def _run(self, line: _Line) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if line.waiting:
                began, small_groups = loop.time(), self._small_groups
                await self._store_group(line.take_group())
                if line is self._small:
                    self._small_groups += 1
                elif self._small_groups != small_groups and not self._stopping:
                    await asyncio.sleep(
                        min(
                            (loop.time() - began) * self._limits.large_rest,
                            self._limits.large_rest_seconds_max,
                        )
                    )
            elif self._stopping:
                return
            else:
                idle = loop.create_future()
                line.idle.append(idle)
                await idle

    async def _store_group(self, group: list[_Waiting]) -> None:
        try:
            await self._store(group)
        finally:
            for waiting in group:
                # a lane that was cancelled leaves nobody waiting
                waiting.resolve(Refusal.STOPPING)
                waiting.held.release()

    async def _store(self, group: Sequence[_Waiting]) -> None:
        try:
            async with self._pool.connection() as connection:
                group = [waiting for waiting in group if not waiting.spooled]
                answers = await put(connection, [waiting.message for waiting in group])
            self._answered_at = asyncio.get_running_loop().time()
            for waiting, stored in zip(group, answers, strict=True):
                waiting.resolve(stored)
            if self._waker is not None and not all(stored.duplicate for stored in answers):
                self._waker.wake(INBOX)
        except (psycopg.Error, OSError) as error:
            await self._failed(group, error)
        else:
            self.breaker.succeeded()

    async def _failed(self, group: Sequence[_Waiting], error: psycopg.Error | OSError) -> None:
        kind = failure(error)
        if _is_about_a_row(kind, error) and len(group) > 1:
            middle = len(group) // 2
            await self._store(group[:middle])
            await self._store(group[middle:])
            return
        _log.warning("ingress_not_stored", failure=kind.value, error=error, rows=len(group))
        if kind is not Failure.UNAVAILABLE:
            self.breaker.succeeded()
            _resolve_all(
                group, Refusal.ROW_REFUSED if _is_about_a_row(kind, error) else Refusal.NOT_STORED
            )
            return
        self.breaker.failed(asyncio.get_running_loop().time())
        _resolve_all(group, Refusal.DATABASE_AWAY)
        # who came later would only wait for the same answer
        self._refuse_waiting(Refusal.DATABASE_AWAY)

    def _refuse_waiting(self, refusal: Refusal) -> None:
        for line in (self._small, self._large):
            line.refuse(refusal)


def _is_about_a_row(kind: Failure, error: psycopg.Error | OSError) -> bool:
    """Return whether a value or a constraint failed.

    A missing partition, with the code of a constraint but no constraint, fails every row.
    """
    if isinstance(error, psycopg.errors.CheckViolation) and error.diag.constraint_name is None:
        return False
    return kind in {Failure.REFUSED_DATA, Failure.DUPLICATE}


def _resolve_all(group: Sequence[_Waiting], refusal: Refusal) -> None:
    for waiting in group:
        waiting.resolve(refusal)


async def put(connection: AsyncConnection[Any], messages: Sequence[SealedMessage]) -> list[Stored]:
    """Store them in a transaction, all or none; return in their order. Durable when it returns."""
    cursor = await connection.execute(_SQL["put"], put_columns(messages), binary=True)
    return [Stored(message_id, duplicate) for _, message_id, duplicate in await cursor.fetchall()]
