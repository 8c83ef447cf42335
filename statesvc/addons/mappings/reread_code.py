"""Reads the history of a code again, known or unknown: a pass over the log, safe to repeat.

A command runs to the end. A call of the API has a budget and answers the place where the next call
goes on.
"""

from collections import deque
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from events.clear_part import listed_code
from statesvc.addons.mappings.code_events import (
    BEGINNING,
    PAGE,
    Connection,
    LogPosition,
    next_of_log,
    open_code_dead_letter,
)
from statesvc.addons.mappings.mapped_code import MappedCode
from statesvc.repair.dead_letters.dead_letter import Obstacle
from statesvc.repair.dead_letters.replay_plan import RepairRequest
from statesvc.repair.dead_letters.replay_run import ReplayBudget, ReplayRun, RunPosition
from statesvc.repair.dead_letters.reread import CodeDeadLetter, conclude_code
from statesvc.repair.renormalize.correction_plan import RenormalizeReport
from statesvc.repair.renormalize.history_walk import HistoryWalk, WalkPage
from statesvc.repair.renormalize.late_code import (
    UnknownCode,
    clock,
    transaction_id,
    wait_for_older_transactions,
)

# A batch becomes visible after later ones, but not after more than these.
_LATE_BATCHES: Final = 1_000
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
    """Position of a run.

    `began`: the database's clock when it began; `is_left`: some events are as unknown as
    before.
    """

    place: LogPosition = BEGINNING
    began: datetime | None = None
    is_left: bool = False


@dataclass(slots=True)
class CodeReread:
    """A run, or a call of it."""

    walk: HistoryWalk
    request: RereadRequest
    position: RereadPosition = field(default_factory=RereadPosition)
    page: int = PAGE
    is_done: bool = field(init=False, default=False)
    dead_letter_id: int | None = field(init=False, default=None)
    """The open dead letter of the code, as it was found at the end."""
    obstacle: Obstacle | None = field(init=False, default=None)
    """Reason for which it stays open."""
    _newest_read: deque[UUID] = field(
        init=False, default_factory=lambda: deque(maxlen=_NEWEST_READ_MAX)
    )

    async def run(self) -> RenormalizeReport:
        """Read from the position on.

        The corrections are in the log, and the run is an operator action, when it returns.
        """
        code = self.request.code
        listed = UnknownCode(
            code.carrier_id, listed_code(code.raw_type), listed_code(code.raw_code)
        )
        walk = self.walk
        if self.position.began is None:
            async with self.walk.connections.connection() as connection:
                self.position = replace(self.position, began=await clock(connection))
        place, self.is_done = await walk.read(self._next_page, self.position.place)
        if self.is_done:
            async with self.walk.connections.connection() as connection:
                await wait_for_older_transactions(connection, await transaction_id(connection))
            late = LogPosition(max(0, place.batch_id - _LATE_BATCHES))
            place, _ = await walk.read(self._next_page, late, is_bounded=False)
        self.position = replace(
            self.position,
            place=place,
            is_left=self.position.is_left or walk.leaves_unknown(listed.key),
        )
        if self.is_done:
            await self._resolve(listed)
        details = {"why": self.request.why, "mapping": self.request.revision}
        await walk.record(self.request.actor, details, is_done=self.is_done)
        return walk.report

    async def _next_page(self, connection: Connection, after: LogPosition) -> WalkPage[LogPosition]:
        page = await next_of_log(connection, self.request.code, after=after, limit=self.page)
        known = set(self._newest_read)
        unread = [message_id for message_id in page.message_ids if message_id not in known]
        self._newest_read.extend(unread)
        return WalkPage([(message_id, None) for message_id in unread], page.last, page.is_last)

    async def _resolve(self, listed: UnknownCode) -> None:
        """Resolve the dead letter of the code.

        If the code has several texts or reasons, all events of the dead letter decide.
        """
        code = self.request.code
        async with self.walk.connections.connection() as connection:
            self.dead_letter_id = await open_code_dead_letter(connection, listed)
        if self.dead_letter_id is None:
            return
        request = RepairRequest.of_one(
            self.dead_letter_id, self.walk.rereader, actor=self.request.actor, why=self.request.why
        )
        is_whole = code.raw_reason is None and not code.stand_ins
        if is_whole and self.position.is_left:
            self.obstacle = Obstacle.STILL_UNKNOWN
        elif is_whole and self.position.began is not None:
            dead_letter = CodeDeadLetter(
                listed.carrier_id, listed.raw_type, listed.raw_code, self.dead_letter_id
            )
            await conclude_code(self.walk, request, dead_letter, began=self.position.began)
        else:
            await self._replay(request)

    async def _replay(self, request: RepairRequest) -> None:
        budget = ReplayBudget(dead_letters_max=1)
        if self.walk.messages_max is not None:
            budget = replace(budget, messages_max=self.walk.messages_max)
        run = ReplayRun(
            connections=self.walk.connections,
            request=request,
            rereader=self.walk.rereader,
            wake=self.walk.wake,
            position=RunPosition(up_to=self.dead_letter_id or 0),
            budget=budget,
        )
        progress = await run.replay()
        if not progress.replayed:
            self.obstacle = next(iter(progress.refused), Obstacle.STILL_UNKNOWN)
