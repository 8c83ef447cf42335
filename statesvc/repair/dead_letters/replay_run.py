"""A replay of many letters: canary first, then at a rate, with an eye on what becomes of them. Safe to kill, and to run again.

What is put back is resolved by the same statement, so a run that dies leaves letters that are replayed and letters that are open,
nothing between; the next run goes on with those. The log names the run before its first letter moves, and each letter names the run.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from statesvc.database.wakeups.channels import INBOX, OUTBOX
from statesvc.log.actions import record_action
from statesvc.repair.dead_letters.dead_letter import Way
from statesvc.repair.dead_letters.obstacle import Obstacle
from statesvc.repair.dead_letters.put_back import Connection, Open, Order, Verdict, next_letters, put_back, replayed_by, verdicts
from statesvc.repair.dead_letters.rejected_members import read_members
from statesvc.repair.dead_letters.replay_pace import Bounds, Ended, Pace
from statesvc.repair.dead_letters.replay_plan import Plan
from statesvc.repair.dead_letters.rereader import Rereader, Result
from statesvc.repair.dead_letters.unknown_code import read_code

BATCH: Final = 200
MEMBERS_AT_ONCE: Final = 50
_TICK_SECONDS: Final = 0.2
_FAILED: Final = frozenset({Verdict.BURIED, Verdict.FAILING})


@dataclass(slots=True)
class Tally:
    """What a run did so far. `settled`, `failed`: verdicts on what was put back, `failed` mostly buried again."""

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
    ended: Ended | None = None
    """None: it goes on."""


Progress = Callable[[Tally], None]
Wake = Callable[[frozenset[str]], Awaitable[None]]
"""Wakes whoever sleeps on these channels; called after the commit."""


@dataclass(slots=True, kw_only=True)
class Run:
    """One run. `connection` in autocommit; `patience_seconds`: without any verdict for so long, it stops."""

    connection: Connection
    order: Order
    bounds: Bounds
    rereader: Rereader
    wake: Wake
    progress: Progress
    patience_seconds: float = 60.0

    async def replay(self, plan: Plan) -> Tally:
        """Replays what the plan says. An operator action at the beginning and at the end."""
        tally = Tally(planned=plan.letters)
        await self._begin(plan)
        try:
            await self._put_back(plan, tally)
            if tally.ended is None:
                await self._read_members(plan, tally)
            if tally.ended is None:
                await self._read_codes(plan, tally)
        except asyncio.CancelledError:
            await self._end(tally, Ended.INTERRUPTED)
            raise
        await self._end(tally, tally.ended or Ended.DONE)
        return tally

    async def _put_back(self, plan: Plan, tally: Tally) -> None:
        pace = Pace(self.bounds)
        began = heard = time.monotonic()
        waiting: set[int] = set()
        after, more = 0, True
        while more or waiting:
            elapsed = time.monotonic() - began
            if stopped := pace.stop():
                tally.ended = stopped
                return
            allowed = min(BATCH, pace.allowance(elapsed)) if more else 0
            if allowed:
                letters = await next_letters(self.connection, self.order, after=after, up_to=plan.up_to, limit=allowed)
                more = len(letters) == allowed
                after = letters[-1].dead_letter_id if letters else after
                back = await self._release(letters, tally)
                pace.release(len(back))
                waiting |= back
            judged = await self._judge(waiting, pace, elapsed)
            if judged or not waiting:
                heard = time.monotonic()
            elif time.monotonic() - heard > self.patience_seconds:
                tally.ended = Ended.NO_VERDICTS
                return
            tally.settled, tally.failed, tally.waiting = pace.settled, pace.failed, pace.waiting
            self.progress(tally)
            if waiting or not allowed:
                await asyncio.sleep(_TICK_SECONDS)

    async def _release(self, letters: list[Open], tally: Tally) -> set[int]:
        if not letters:
            return set()
        answers = await put_back(self.connection, self.order, [letter.dead_letter_id for letter in letters])
        back = {letter_id for letter_id, obstacle in answers.items() if obstacle is None}
        tally.refused.update(obstacle for obstacle in answers.values() if obstacle is not None)
        tally.replayed += len(back)
        if back:
            await self.wake(
                frozenset(OUTBOX if letter.kind == "notification" else INBOX for letter in letters if letter.dead_letter_id in back)
            )
        return back

    async def _judge(self, waiting: set[int], pace: Pace, elapsed: float) -> bool:
        if not waiting:
            return False
        found = await verdicts(self.connection, waiting)
        done = {letter_id: verdict for letter_id, verdict in found.items() if verdict is not Verdict.WAITING}
        failed = sum(verdict in _FAILED for verdict in done.values())
        pace.judge(elapsed, settled=len(done) - failed, failed=failed)
        waiting.difference_update(done)
        return bool(done)

    async def _read_members(self, plan: Plan, tally: Tally) -> None:
        pace = Pace(self.bounds)
        began, after = time.monotonic(), 0
        while letters := await next_letters(
            self.connection, self.order, [Way.READ_AGAIN], after=after, up_to=plan.up_to, limit=MEMBERS_AT_ONCE
        ):
            after = letters[-1].dead_letter_id
            result = await read_members(self.connection, self.order, self.rereader, letters)
            resolved = len(letters) - result.obstacles.total()
            tally.replayed += resolved
            tally.reread += result.messages
            await self._take(result, tally)
            pace.release(len(letters))
            pace.judge(time.monotonic() - began, settled=resolved, failed=len(letters) - resolved)
            self.progress(tally)
            if stopped := pace.stop():
                tally.ended = stopped
                return
            await self._pause(began, pace.released)

    async def _read_codes(self, plan: Plan, tally: Tally) -> None:
        after, began, before = 0, time.monotonic(), tally.reread

        async def told(messages: int, left: int) -> None:
            tally.reread += messages
            tally.reread_planned = tally.reread + left
            self.progress(tally)
            await self._pause(began, tally.reread - before)

        while letters := await next_letters(self.connection, self.order, [Way.READ_CODE], after=after, up_to=plan.up_to, limit=1):
            (letter,) = letters
            after = letter.dead_letter_id
            result = await read_code(self.connection, self.order, self.rereader, letter.dead_letter_id, told)
            tally.replayed += not result.obstacles
            await self._take(result, tally)
            self.progress(tally)

    async def _take(self, result: Result, tally: Tally) -> None:
        tally.refused += result.obstacles
        tally.corrected += result.corrected
        tally.added += result.added
        if result.transitions:
            await self.wake(frozenset({OUTBOX}))

    async def _pause(self, began: float, done: int) -> None:
        if self.bounds.per_second is not None:
            await asyncio.sleep(max(0.0, began + done / self.bounds.per_second - time.monotonic()))

    async def _begin(self, plan: Plan) -> None:
        details: dict[str, Any] = {
            "run": str(self.order.run_id),
            "why": self.order.why,
            **self.order.wanted.stated,
            "letters": plan.letters,
            "replayable": plan.replayable,
            "canary": self.bounds.canary,
            "stop_at_percent": str(self.bounds.stop_at_percent),
        }
        if self.bounds.per_second is not None:
            details["per_second"] = str(self.bounds.per_second)
        if self.order.ids is not None:
            details["ids"] = " ".join(map(str, self.order.ids))
        async with self.connection.transaction():
            await record_action(self.connection, actor=self.order.actor, verb="replay_begun", target=self.order.target, details=details)

    async def _end(self, tally: Tally, ended: Ended) -> None:
        tally.ended = ended
        tally.replayed = await replayed_by(self.connection, self.order)
        details: dict[str, Any] = {
            "run": str(self.order.run_id),
            "ended": ended.value,
            "replayed": tally.replayed,
            "settled": tally.settled,
            "failed": tally.failed,
            "waiting": tally.waiting,
            "corrected": tally.corrected,
            "added": tally.added,
            "refused": tally.refused.total(),
        }
        async with self.connection.transaction():
            await record_action(self.connection, actor=self.order.actor, verb="replay_ended", target=self.order.target, details=details)
