"""The replay of dead letters, cut into calls. Safe to kill, and to run again.

The statement that puts a dead letter back also resolves it, so a run that dies leaves dead letters
that are replayed and some that are open, and the next run goes on with those. The log names the run
before its first dead letter moves, and each of them names the run. A call has a budget and ends
when that is spent; the position that it answers is where the next call goes on with the same run.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import Field

from statesvc.database.pool import Connections
from statesvc.database.wakeups.wakeup import OUTBOX, READY_NOW
from statesvc.http.paging import RowNumber
from statesvc.log.actions import record_action
from statesvc.repair.dead_letters.dead_letter import Obstacle, Way
from statesvc.repair.dead_letters.put_back import put_back, replayed_by
from statesvc.repair.dead_letters.replay_plan import (
    OpenDeadLetter,
    RepairRequest,
    ReplayPlan,
    count_remaining,
    next_dead_letters,
)
from statesvc.repair.dead_letters.reread import (
    CodeDeadLetter,
    conclude_code,
    find_code,
    reread_members,
)
from statesvc.repair.renormalize.correction_plan import RenormalizeReport
from statesvc.repair.renormalize.history_walk import MESSAGES_AT_ONCE, HistoryWalk, Rereader, Wake
from statesvc.repair.renormalize.late_code import FIRST, clock, messages_with

STEPS: Final[tuple[tuple[Way, ...], ...]] = (
    (Way.PUT_BACK, Way.SEND_AGAIN),
    (Way.READ_AGAIN,),
    (Way.READ_CODE,),
)
BATCH: Final = 200


class ReplayEnd(StrEnum):
    """End of a call of a run. Stable words: the log holds them, with the reasons of older runs."""

    DONE = "done"
    LIMIT_REACHED = "limit_reached"
    """The budget of the call is used up; more remains."""
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayBudget:
    """Budget of a call: dead letters to release, messages to read again, and time."""

    dead_letters_max: int
    messages_max: int = 2_000
    seconds: float = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPosition:
    """Position of a run.

    `step`: of STEPS; `after`: the last finished dead letter of the step. `code_*`: how far the
    events of the next code are read. `code_began`: the database's clock when their reading
    began.
    """

    up_to: RowNumber
    step: Annotated[int, Field(ge=0, lt=len(STEPS))] = 0
    after: RowNumber = 0
    code_after: UUID = FIRST
    code_began: datetime | None = None
    code_left: bool = False
    """Some of its events were read and are as unknown as before."""


@dataclass(slots=True, kw_only=True)
class RunProgress:
    replayed: int = 0
    put_back: int = 0
    """Of the replayed: those that went back into a queue."""
    reread: int = 0
    """Messages that were read again, for codes and rejected members."""
    corrected: int = 0
    added: int = 0
    refused: Counter[Obstacle] = field(default_factory=Counter)
    ended: ReplayEnd | None = None
    remaining: int = 0
    """Dead letters that a call has not reached."""


@dataclass(slots=True, kw_only=True)
class ReplayRun:
    """A call of a run."""

    connections: Connections
    request: RepairRequest
    rereader: Rereader
    wake: Wake
    position: RunPosition
    budget: ReplayBudget
    progress: RunProgress = field(init=False, default_factory=RunProgress)
    _plan: ReplayPlan | None = field(init=False, default=None)
    _is_recorded: bool = field(init=False, default=False)
    _began: float = field(init=False, default_factory=time.monotonic)

    async def replay(self, plan: ReplayPlan | None = None) -> RunProgress:
        """Replay from the position on.

        Records an operator action before the first dead letter moves, and another at the
        end.
        """
        self._plan = plan
        steps = (self._put_back, self._reread_members, self._reread_codes)
        ended = None
        try:
            while ended is None:
                ended = await steps[self.position.step]()
                if ended is None and self.position.step + 1 == len(STEPS):
                    ended = ReplayEnd.DONE
                elif ended is None:
                    self.position = replace(self.position, step=self.position.step + 1, after=0)
        # the log must say how the run ended, also where its caller has gone
        except asyncio.CancelledError:
            await self._record_end(ReplayEnd.INTERRUPTED)
            raise
        await self._record_end(ended)
        return self.progress

    async def _put_back(self) -> ReplayEnd | None:
        while batch := await self._next(min(BATCH, max(1, self._left()))):
            if self._is_spent():
                return ReplayEnd.LIMIT_REACHED
            await self._record_begin()
            async with self.connections.connection() as connection:
                answers = await put_back(
                    connection, self.request, [each.dead_letter_id for each in batch]
                )
            self.progress.refused.update(found for found in answers.values() if found is not None)
            back = [each for each in batch if answers.get(each.dead_letter_id) is None]
            self.progress.replayed += len(back)
            self.progress.put_back += len(back)
            # also past those that were refused: the run does not come to them again
            self.position = replace(self.position, after=batch[-1].dead_letter_id)
            if back:
                kinds = {each.kind == "notification" for each in back}
                await self.wake(
                    frozenset(
                        channel for sent in kinds for channel in ((OUTBOX,) if sent else READY_NOW)
                    )
                )
        return None

    async def _reread_members(self) -> ReplayEnd | None:
        while batch := await self._next(min(MESSAGES_AT_ONCE, max(1, self._left()))):
            if self._is_spent():
                return ReplayEnd.LIMIT_REACHED
            await self._record_begin()
            async with self.connections.connection() as connection:
                report, obstacles = await reread_members(
                    connection, self.request, self.rereader, batch
                )
            self.position = replace(self.position, after=batch[-1].dead_letter_id)
            self.progress.replayed += len(batch) - obstacles.total()
            self.progress.refused += obstacles
            self._count_reread(report)
            if report.notifications:
                await self.wake(frozenset({OUTBOX}))
        return None

    async def _reread_codes(self) -> ReplayEnd | None:
        while batch := await self._next(1):
            if self._is_spent():
                return ReplayEnd.LIMIT_REACHED
            async with self.connections.connection() as connection:
                # the database's clock, before the first message is read: events recorded since are
                # read already
                began = self.position.code_began or await clock(connection)
                code = await find_code(connection, self.rereader, batch[0].dead_letter_id)
            if isinstance(code, Obstacle):
                self.progress.refused[code] += 1
            else:
                await self._record_begin()
                if not await self._reread_code(code, began=began):
                    return ReplayEnd.LIMIT_REACHED
            self.position = RunPosition(
                up_to=self.position.up_to,
                step=self.position.step,
                after=batch[0].dead_letter_id,
            )
        return None

    async def _reread_code(self, code: CodeDeadLetter, *, began: datetime) -> bool:
        """Read the messages with the code again, and conclude it.

        Return False if the budget is spent before the last message.
        """
        walk = HistoryWalk(
            connections=self.connections,
            rereader=self.rereader,
            wake=self.wake,
            carrier_id=code.carrier_id,
            messages_max=self.budget.messages_max - self.progress.reread,
            seconds=self._began + self.budget.seconds - time.monotonic(),
            after_part=lambda report, _: self._count_reread(report),
        )
        after, is_whole = await walk.read(messages_with(code), self.position.code_after)
        left = self.position.code_left or walk.leaves_unknown(code.key)
        self.position = replace(self.position, code_after=after, code_began=began, code_left=left)
        if is_whole and left:
            self.progress.refused[Obstacle.STILL_UNKNOWN] += 1
        # only after the last message: a code concluded earlier would hide those that were not read
        elif is_whole:
            await conclude_code(walk, self.request, code, began=began)
            self.progress.replayed += 1
        return is_whole

    def _count_reread(self, report: RenormalizeReport) -> None:
        self.progress.reread += report.messages
        self.progress.corrected += report.corrected
        self.progress.added += report.added

    async def _next(self, limit: int) -> list[OpenDeadLetter]:
        async with self.connections.connection() as connection:
            return await next_dead_letters(
                connection,
                self.request,
                STEPS[self.position.step],
                after=self.position.after,
                up_to=self.position.up_to,
                limit=limit,
            )

    def _left(self) -> int:
        """Return how many more dead letters the call may come to."""
        return self.budget.dead_letters_max - self.progress.replayed - self.progress.refused.total()

    def _is_spent(self) -> bool:
        is_late = time.monotonic() - self._began >= self.budget.seconds
        return is_late or self._left() <= 0 or self.progress.reread >= self.budget.messages_max

    async def _record_begin(self) -> None:
        if self._is_recorded:
            return
        request = self.request
        details: dict[str, Any] = {**request.wanted.stated}
        if self._plan is not None and request.ids is None:
            details |= {
                "dead_letters": self._plan.dead_letters,
                "replayable": self._plan.replayable,
            }
        if request.ids is not None:
            details["ids"] = " ".join(map(str, request.ids))
        await self._record("replay_begun", details)
        self._is_recorded = True

    async def _record_end(self, ended: ReplayEnd) -> None:
        progress, position = self.progress, self.position
        progress.ended = ended
        async with self.connections.connection() as connection:
            if ended is ReplayEnd.INTERRUPTED:
                # what was put back just before is not known here
                progress.replayed = await replayed_by(connection, self.request)
            if ended is not ReplayEnd.DONE:
                progress.remaining = await count_remaining(
                    connection,
                    self.request,
                    STEPS[position.step],
                    after=position.after,
                    later_ways=_flat(STEPS[position.step + 1 :]),
                    up_to=position.up_to,
                )
        # a call that moved nothing leaves no entry
        if not self._is_recorded:
            return
        details: dict[str, Any] = {
            "ended": ended.value,
            "replayed": progress.replayed,
            "corrected": progress.corrected,
            "added": progress.added,
            "refused": progress.refused.total(),
        }
        await self._record("replay_ended", details)

    async def _record(self, verb: str, details: Mapping[str, Any]) -> None:
        request = self.request
        stated = {"run": str(request.run_id), "why": request.why, **details}
        # in a transaction of its own: the entry must stand even if the next batch fails
        async with self.connections.connection() as connection, connection.transaction():
            await record_action(
                connection, actor=request.actor, verb=verb, target=request.target, details=stated
            )


def _flat(steps: Collection[tuple[Way, ...]]) -> list[Way]:
    return [way for step in steps for way in step]
