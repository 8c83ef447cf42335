"""The replay of dead letters: canary first, then at a rate, watching what becomes of them. Safe to kill, and to run again.

What is put back is resolved by the same statement, so a run that dies leaves dead letters that are replayed and some that are open,
nothing between; the next run goes on with those. The log names the run before its first dead letter moves, and each of them names the
run. A command runs to the end and waits for the last verdict; a call of the API has a budget, ends when that is spent or nothing is left
to release, and answers the position where the next call goes on with the same run.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import Field

from statesvc.database.pool import Connections
from statesvc.database.wakeups.channels import OUTBOX, READY_NOW
from statesvc.http.paging import RowNumber
from statesvc.log.actions import record_action
from statesvc.repair.dead_letters.dead_letter import Obstacle, Way
from statesvc.repair.dead_letters.put_back import (
    ReplayVerdict,
    put_back,
    put_back_by,
    replayed_by,
    verdicts,
)
from statesvc.repair.dead_letters.replay_pace import ReplayEnd, ReplayLimits, ReplayPace
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
_TICK_SECONDS: Final = 0.2
_FAILED: Final = frozenset({ReplayVerdict.BURIED, ReplayVerdict.FAILING})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayBudget:
    """Budget of one call: dead letters that it releases, messages that it reads again, and its time."""

    dead_letters_max: int
    messages_max: int = 2_000
    seconds: float = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPosition:
    """Position of a run. `step`: of STEPS; `after`: the last dead letter that the step is done with.

    `code_*`: how far the events of the next code are read. `code_began`: the database's clock when their reading began.
    """

    up_to: RowNumber
    step: Annotated[int, Field(ge=0, lt=len(STEPS))] = 0
    after: RowNumber = 0
    canary_passed: bool = False
    code_after: UUID = FIRST
    code_began: datetime | None = None
    code_left: bool = False
    """Some of its events were read and are as unknown as before."""


@dataclass(slots=True, kw_only=True)
class RunProgress:
    """Progress of a run, or of one call of it. `settled`, `failed`, `waiting`: verdicts on what the run put back."""

    planned: int
    replayed: int = 0
    settled: int = 0
    failed: int = 0
    waiting: int = 0
    reread: int = 0
    """Messages that were read again, for codes and rejected members."""
    reread_planned: int = 0
    corrected: int = 0
    added: int = 0
    refused: Counter[Obstacle] = field(default_factory=Counter)
    ended: ReplayEnd | None = None
    """None: it goes on."""
    remaining: int = 0
    """Dead letters that a call has not come to."""


@dataclass(slots=True, kw_only=True)
class ReplayRun:
    """One run, or one call of it. `budget` None: to the end. `patience_seconds`: it stops after this time without any verdict.

    `waits`: it is not done before each that it put back has a verdict.
    """

    connections: Connections
    request: RepairRequest
    limits: ReplayLimits
    rereader: Rereader
    wake: Wake
    show: Callable[[RunProgress], None]
    position: RunPosition
    budget: ReplayBudget | None = None
    patience_seconds: float = 60.0
    waits: bool = False
    progress: RunProgress = field(init=False, default_factory=lambda: RunProgress(planned=0))
    _plan: ReplayPlan | None = field(init=False, default=None)
    _is_recorded: bool = field(init=False, default=False)
    _began: float = field(init=False, default_factory=time.monotonic)

    async def replay(self, plan: ReplayPlan | None = None) -> RunProgress:
        """Replay from the position on. Records an operator action before the first dead letter moves, and one at the end."""
        self._plan = plan
        self.progress.planned = plan.dead_letters if plan is not None else 0
        steps = (self._put_back, self._reread_members, self._reread_codes)
        ended = None
        try:
            while ended is None:
                ended = await steps[self.position.step]()
                if ended is None and self.position.step + 1 == len(STEPS):
                    ended = ReplayEnd.DONE
                elif ended is None:
                    self.position = replace(self.position, step=self.position.step + 1, after=0)
        except asyncio.CancelledError:
            await self._record_end(ReplayEnd.INTERRUPTED)
            raise
        await self._record_end(ended)
        return self.progress

    async def _put_back(self) -> ReplayEnd | None:
        pace, waiting = await self._resume()
        began = heard = time.monotonic()
        more = True
        waits = self.waits or self.budget is None
        while more or (waiting and waits):
            elapsed = time.monotonic() - began
            if stopped := pace.stop():
                return stopped
            if self._is_spent():
                return (
                    ReplayEnd.LIMIT_REACHED if (waiting and waits) or await self._next(1) else None
                )
            allowed = min(BATCH, pace.allowance(elapsed), self._left()) if more else 0
            if allowed:
                found = await self._next(allowed + 1)
                more = len(found) > allowed
                released = await self._release(found[:allowed])
                pace.release(len(released))
                waiting |= released
            judged = await self._judge(waiting, pace, elapsed)
            self.position = replace(self.position, canary_passed=pace.is_open)
            self._count(pace)
            goes_on = more or waits
            if judged or not waiting:
                heard = time.monotonic()
            elif goes_on and time.monotonic() - heard > self.patience_seconds:
                return ReplayEnd.NO_VERDICTS
            self.show(self.progress)
            if goes_on and (waiting or not allowed):
                await asyncio.sleep(_TICK_SECONDS)
        return None

    async def _resume(self) -> tuple[ReplayPace, set[int]]:
        """Resume: what earlier calls of the run put back counts as the run's own."""
        pace = ReplayPace(self.limits)
        if self.position.after == 0:
            return pace, set()
        async with self.connections.connection() as connection:
            ids = await put_back_by(
                connection, self.request, up_to=self.position.after, limit=self.limits.waiting_max
            )
            found = await verdicts(connection, ids)
        waiting = {
            dead_letter_id
            for dead_letter_id, verdict in found.items()
            if verdict is ReplayVerdict.WAITING
        }
        failed = sum(verdict in _FAILED for verdict in found.values())
        pace.resume(
            settled=len(found) - failed - len(waiting),
            failed=failed,
            waiting=len(waiting),
            canary_passed=self.position.canary_passed,
        )
        self._count(pace)
        return pace, waiting

    def _count(self, pace: ReplayPace) -> None:
        self.progress.settled, self.progress.failed, self.progress.waiting = (
            pace.settled,
            pace.failed,
            pace.waiting,
        )

    async def _release(self, batch: list[OpenDeadLetter]) -> set[int]:
        if not batch:
            return set()
        await self._record_begin()
        async with self.connections.connection() as connection:
            answers = await put_back(
                connection, self.request, [each.dead_letter_id for each in batch]
            )
        released = {
            dead_letter_id for dead_letter_id, obstacle in answers.items() if obstacle is None
        }
        self.progress.refused.update(
            obstacle for obstacle in answers.values() if obstacle is not None
        )
        self.progress.replayed += len(released)
        self.position = replace(self.position, after=batch[-1].dead_letter_id)
        if released:
            await self.wake(
                frozenset(
                    channel
                    for each in batch
                    if each.dead_letter_id in released
                    for channel in ((OUTBOX,) if each.kind == "notification" else READY_NOW)
                )
            )
        return released

    async def _judge(self, waiting: set[int], pace: ReplayPace, elapsed: float) -> bool:
        if not waiting:
            return False
        async with self.connections.connection() as connection:
            found = await verdicts(connection, waiting)
        done = {
            dead_letter_id: verdict
            for dead_letter_id, verdict in found.items()
            if verdict is not ReplayVerdict.WAITING
        }
        failed = sum(verdict in _FAILED for verdict in done.values())
        pace.judge(elapsed, settled=len(done) - failed, failed=failed)
        waiting.difference_update(done)
        return bool(done)

    async def _reread_members(self) -> ReplayEnd | None:
        pace = ReplayPace(self.limits)
        began = time.monotonic()
        while True:
            size = min(
                MESSAGES_AT_ONCE if pace.is_open else self.limits.canary,
                MESSAGES_AT_ONCE,
                max(1, self._left()),
            )
            batch = await self._next(size)
            if not batch:
                return None
            if self._is_spent():
                return ReplayEnd.LIMIT_REACHED
            await self._record_begin()
            async with self.connections.connection() as connection:
                report, obstacles = await reread_members(
                    connection, self.request, self.rereader, batch
                )
            self.position = replace(self.position, after=batch[-1].dead_letter_id)
            resolved = len(batch) - obstacles.total()
            self.progress.replayed += resolved
            self.progress.refused += obstacles
            self._count_reread(report)
            if report.notifications:
                await self.wake(frozenset({OUTBOX}))
            pace.release(len(batch))
            pace.judge(time.monotonic() - began, settled=resolved, failed=len(batch) - resolved)
            self.show(self.progress)
            if stopped := pace.stop():
                return stopped
            if self.limits.per_second is not None:
                await asyncio.sleep(
                    max(0.0, began + pace.released / self.limits.per_second - time.monotonic())
                )

    async def _reread_codes(self) -> ReplayEnd | None:
        while batch := await self._next(1):
            if self._is_spent():
                return ReplayEnd.LIMIT_REACHED
            async with self.connections.connection() as connection:
                began = self.position.code_began or await clock(connection)
                code = await find_code(connection, self.rereader, batch[0].dead_letter_id)
            if isinstance(code, Obstacle):
                self.progress.refused[code] += 1
            else:
                await self._record_begin()
                if not await self._reread_code(code, began=began):
                    return ReplayEnd.LIMIT_REACHED
            self.show(self.progress)
            self.position = RunPosition(
                up_to=self.position.up_to,
                step=self.position.step,
                after=batch[0].dead_letter_id,
                canary_passed=self.position.canary_passed,
            )
        return None

    async def _reread_code(self, code: CodeDeadLetter, *, began: datetime) -> bool:
        """Read the messages with the code again, and conclude it; return False where the budget is spent before the last one."""
        budget = self.budget
        walk = HistoryWalk(
            connections=self.connections,
            rereader=self.rereader,
            wake=self.wake,
            carrier_id=code.carrier_id,
            messages_max=None if budget is None else budget.messages_max - self.progress.reread,
            seconds=None if budget is None else self._began + budget.seconds - time.monotonic(),
            per_second=self.limits.per_second,
            after_part=self._show_part,
        )
        after, is_whole = await walk.read(messages_with(code), self.position.code_after)
        left = self.position.code_left or walk.leaves_unknown(code.key)
        self.position = replace(self.position, code_after=after, code_began=began, code_left=left)
        if is_whole and left:
            self.progress.refused[Obstacle.STILL_UNKNOWN] += 1
        elif is_whole:
            await conclude_code(walk, self.request, code, began=began)
            self.progress.replayed += 1
        return is_whole

    def _show_part(self, report: RenormalizeReport, left: int) -> None:
        self._count_reread(report)
        self.progress.reread_planned = self.progress.reread + left
        self.show(self.progress)

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
        if self.budget is None:
            return BATCH
        return self.budget.dead_letters_max - self.progress.replayed - self.progress.refused.total()

    def _is_spent(self) -> bool:
        budget = self.budget
        if budget is None:
            return False
        is_late = time.monotonic() - self._began >= budget.seconds
        return is_late or self._left() <= 0 or self.progress.reread >= budget.messages_max

    async def _record_begin(self) -> None:
        if self._is_recorded:
            return
        request, limits = self.request, self.limits
        details: dict[str, Any] = {
            **request.wanted.stated,
            "canary": limits.canary,
            "stop_at_percent": str(limits.stop_at_percent),
        }
        if self._plan is not None:
            details |= {
                "dead_letters": self._plan.dead_letters,
                "replayable": self._plan.replayable,
            }
        if limits.per_second is not None:
            details["per_second"] = str(limits.per_second)
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
            if self.budget is not None and ended is not ReplayEnd.DONE:
                progress.remaining = await count_remaining(
                    connection,
                    self.request,
                    STEPS[position.step],
                    after=position.after,
                    later_ways=_flat(STEPS[position.step + 1 :]),
                    up_to=position.up_to,
                )
        if not self._is_recorded:
            return
        details: dict[str, Any] = {
            "ended": ended.value,
            "replayed": progress.replayed,
            "settled": progress.settled,
            "failed": progress.failed,
            "waiting": progress.waiting,
            "corrected": progress.corrected,
            "added": progress.added,
            "refused": progress.refused.total(),
        }
        await self._record("replay_ended", details)

    async def _record(self, verb: str, details: Mapping[str, Any]) -> None:
        request = self.request
        stated = {"run": str(request.run_id), "why": request.why, **details}
        async with self.connections.connection() as connection, connection.transaction():
            await record_action(
                connection, actor=request.actor, verb=verb, target=request.target, details=stated
            )


def _flat(steps: Collection[tuple[Way, ...]]) -> list[Way]:
    return [way for step in steps for way in step]
