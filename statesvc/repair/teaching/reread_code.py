"""Reads the history of one code again, whatever it was read as: a pass over the log, safe to stop and to run again.

A command runs to the end. A call of the API has a budget and answers the place where the next call goes on.
"""

import time
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

from events.clear_part import listed_code
from statesvc.database.pool import Connections
from statesvc.database.wakeups.channels import OUTBOX
from statesvc.log.actions import record_action
from statesvc.reading.mapped_code import MappedCode
from statesvc.repair.dead_letters.dead_letter import DeadLetterFilter, Obstacle
from statesvc.repair.dead_letters.replay_pace import ReplayLimits
from statesvc.repair.dead_letters.replay_plan import RepairRequest
from statesvc.repair.dead_letters.replay_run import ReplayBudget, ReplayRun, RunPosition, Wake
from statesvc.repair.dead_letters.reread import MESSAGES_AT_ONCE, CodeDeadLetter, Rereader, conclude_code
from statesvc.repair.renormalize.correction_plan import RenormalizeReport
from statesvc.repair.renormalize.late_code import clock, transaction_id, wait_for_older_transactions
from statesvc.repair.teaching.code_events import BEGINNING, PAGE, LogPosition, next_of_log, open_code_dead_letter

_LATE_BATCHES: Final = 1_000
"""A batch becomes visible after later ones, but not after more than these."""
_NEWEST_READ_MAX: Final = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RereadRequest:
    """A request to read a code again. `revision`: the mapping that the log names."""

    code: MappedCode
    revision: int
    actor: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RereadPosition:
    """Position of a run. `began`: the database's clock when it began; `is_left`: some events are as unknown as before."""

    place: LogPosition = BEGINNING
    began: datetime | None = None
    is_left: bool = False


@dataclass(slots=True)
class CodeReread:
    """One run, or one call of it. `messages_max`, `seconds` None: to the end."""

    connections: Connections
    rereader: Rereader
    request: RereadRequest
    wake: Wake
    position: RereadPosition = field(default_factory=RereadPosition)
    messages_max: int | None = None
    seconds: float | None = None
    page: int = field(default_factory=lambda: PAGE)
    report: RenormalizeReport = field(init=False, default_factory=RenormalizeReport)
    is_done: bool = field(init=False, default=False)
    dead_letter_id: int | None = field(init=False, default=None)
    """The open dead letter of the code, as it was found at the end."""
    obstacle: Obstacle | None = field(init=False, default=None)
    """Reason for which it stays open."""
    _until: float | None = field(init=False, default=None)
    _newest_read: deque[UUID] = field(init=False, default_factory=lambda: deque(maxlen=_NEWEST_READ_MAX))

    async def run(self) -> RenormalizeReport:
        """Read from the position on. The corrections are in the log, and the run is an operator action, when it returns."""
        self._until = None if self.seconds is None else time.monotonic() + self.seconds
        if self.position.began is None:
            async with self.connections.connection() as connection:
                self.position = replace(self.position, began=await clock(connection))
        if await self._pass():
            async with self.connections.connection() as connection:
                await wait_for_older_transactions(connection, await transaction_id(connection))
            place = self.position.place
            self.position = replace(self.position, place=LogPosition(max(0, place.batch_id - _LATE_BATCHES)))
            if await self._pass(is_late=True):
                await self._resolve()
                self.is_done = True
        await self._record()
        return self.report

    async def _pass(self, *, is_late: bool = False) -> bool:
        """Run a pass; return whether it came to the end of the log before the budget was spent."""
        while True:
            async with self.connections.connection() as connection:
                page = await next_of_log(connection, self.request.code, after=self.position.place, limit=self.page)
            known = set(self._newest_read)
            unread = [each for each in page.message_ids if each not in known]
            for start in range(0, len(unread), MESSAGES_AT_ONCE):
                await self._read(unread[start : start + MESSAGES_AT_ONCE])
            self.position = replace(self.position, place=page.last)
            if page.is_last:
                return True
            if not is_late and self._is_spent():
                return False

    async def _read(self, message_ids: list[UUID]) -> None:
        async with self.connections.connection() as connection:
            report = await self.rereader.read(connection, self.request.code.carrier_id, message_ids)
        self.report.add(report)
        self._newest_read.extend(message_ids)
        left = (listed_code(self.request.code.raw_type), listed_code(self.request.code.raw_code)) in report.codes_left
        self.position = replace(self.position, is_left=self.position.is_left or left)
        if report.notifications:
            await self.wake(frozenset({OUTBOX}))

    def _is_spent(self) -> bool:
        is_late = self._until is not None and time.monotonic() >= self._until
        return is_late or (self.messages_max is not None and self.report.messages >= self.messages_max)

    async def _resolve(self) -> None:
        """Resolve the dead letter of the code. Where it is one of several texts or reasons, all events of the dead letter decide."""
        code = self.request.code
        listed = (code.carrier_id, listed_code(code.raw_type), listed_code(code.raw_code))
        async with self.connections.connection() as connection:
            self.dead_letter_id = await open_code_dead_letter(connection, listed)
        if self.dead_letter_id is None:
            return
        request = RepairRequest(
            wanted=DeadLetterFilter(),
            ids=(self.dead_letter_id,),
            carriers=frozenset(self.rereader.carriers),
            actor=self.request.actor,
            why=self.request.why,
            run_id=uuid4(),
        )
        is_whole = code.raw_reason is None and not code.stand_ins
        if is_whole and self.position.is_left:
            self.obstacle = Obstacle.STILL_UNKNOWN
        elif is_whole and self.position.began is not None:
            dead_letter = CodeDeadLetter(*listed, self.dead_letter_id)
            async with self.connections.connection() as connection:
                await conclude_code(connection, request, self.rereader, dead_letter, began=self.position.began)
        else:
            await self._replay(request)

    async def _replay(self, request: RepairRequest) -> None:
        run = ReplayRun(
            connections=self.connections,
            request=request,
            limits=ReplayLimits(per_second=None),
            rereader=self.rereader,
            wake=self.wake,
            show=lambda _: None,
            position=RunPosition(up_to=self.dead_letter_id or 0),
            budget=None if self.messages_max is None else ReplayBudget(dead_letters_max=1, messages_max=self.messages_max),
        )
        progress = await run.replay()
        if not progress.replayed:
            self.obstacle = next(iter(progress.refused), Obstacle.STILL_UNKNOWN)

    async def _record(self) -> None:
        request, report = self.request, self.report
        details: dict[str, Any] = {
            "why": request.why,
            "mapping": request.revision,
            "version": self.rereader.carriers[request.code.carrier_id].stable,
            **report.recorded,
            "done": self.is_done,
        }
        async with self.connections.connection() as connection, connection.transaction():
            await record_action(
                connection, actor=request.actor, verb="renormalize", target=f"carrier {request.code.carrier_id}", details=details
            )
