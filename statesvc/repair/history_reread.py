"""Reads all messages of a carrier again, as much as fits into a call: safe to stop at any place, and to run again.

A call answers the position where the next one goes on. Each is an operator action of its own, so that what was done is on record however
the run ends; the last call resolves the dead letters of codes whose events are all known.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

from statesvc.database.pool import Connections
from statesvc.database.queries import queries
from statesvc.database.wakeups.channels import OUTBOX
from statesvc.log.actions import record_action
from statesvc.repair.dead_letters.dead_letter import DeadLetterFilter
from statesvc.repair.dead_letters.replay_plan import RepairRequest
from statesvc.repair.dead_letters.replay_run import Wake
from statesvc.repair.dead_letters.reread import MESSAGES_AT_ONCE, CodeDeadLetter, Rereader, conclude_code
from statesvc.repair.renormalize.correction_plan import RenormalizeReport
from statesvc.repair.renormalize.late_code import FIRST, clock

_SQL = queries("statesvc.repair", "history_reread")

_SCANNED_AT_ONCE: Final = 2_000
CODES_MAX: Final = 500
"""Dead letters that a position names, of codes that stay unknown. Where there are more, none is resolved: a replay by code does that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRequest:
    """A request to read messages again. `read_by`: only those that this version of the carrier's code read."""

    carrier_id: str
    actor: str
    why: str = ""
    since: datetime | None = None
    read_by: str | None = None
    dry_run: bool = False
    per_second: float | None = None

    @property
    def is_partial(self) -> bool:
        """True if it says nothing about all events with a code, or is only asked what it would do."""
        return self.dry_run or self.since is not None or self.read_by is not None

    @property
    def scope(self) -> dict[str, Any]:
        """Parameters of the statements."""
        read_by = f"{self.carrier_id}@{self.read_by}" if self.read_by else None
        return {"carrier_id": self.carrier_id, "since": self.since, "read_by": read_by}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPosition:
    """Position of a run, with what its end has to know of all of it.

    `scanned`: messages of all carriers that it has passed. `began`: the database's clock when it began. `learned`, `left`: open dead
    letters of codes that it read, and of those that it found unknown.
    """

    after: UUID = FIRST
    scanned: int = 0
    began: datetime | None = None
    learned: frozenset[int] = frozenset()
    left: frozenset[int] = frozenset()


@dataclass(slots=True)
class HistoryReread:
    """One call of a run. `messages_max`, `seconds` None: to the end."""

    connections: Connections
    rereader: Rereader
    request: HistoryRequest
    wake: Wake
    position: HistoryPosition = field(default_factory=HistoryPosition)
    messages_max: int | None = None
    seconds: float | None = None
    page: int = _SCANNED_AT_ONCE
    report: RenormalizeReport = field(init=False, default_factory=RenormalizeReport)
    is_done: bool = field(init=False, default=False)
    remaining: int = field(init=False, default=0)
    """About how many messages of all carriers the run has still to pass."""
    _began: float = field(init=False, default_factory=time.monotonic)

    async def run(self) -> RenormalizeReport:
        """Read from the position on. The corrections are in the log, and on record, when it returns."""
        if self.position.began is None:
            async with self.connections.connection() as connection:
                self.position = replace(self.position, began=await clock(connection))
        self.is_done = await self._pass()
        if not self.request.is_partial:
            await self._settle_codes()
        if not self.request.dry_run:
            await self._record()
        await self._count()
        return self.report

    async def _pass(self) -> bool:
        """Run a pass; return whether it came to the end of the messages before the budget was spent."""
        while True:
            async with self.connections.connection() as connection:
                parameters = {**self.request.scope, "after": self.position.after, "limit": self.page}
                scanned = await (await connection.execute(_SQL["next_messages"], parameters, binary=True)).fetchall()
            wanted = [(index, message_id) for index, (message_id, is_wanted) in enumerate(scanned, start=1) if is_wanted]
            passed = self.position.scanned
            for start in range(0, len(wanted), MESSAGES_AT_ONCE):
                batch = wanted[start : start + MESSAGES_AT_ONCE]
                await self._read([message_id for _, message_id in batch])
                index, last = batch[-1]
                self.position = replace(self.position, after=last, scanned=passed + index)
                if self._is_spent():
                    return False
            if scanned:
                self.position = replace(self.position, after=scanned[-1][0], scanned=passed + len(scanned))
            if len(scanned) < self.page:
                return True
            if self._is_spent():
                return False

    async def _read(self, message_ids: Sequence[UUID]) -> None:
        request = self.request
        async with self.connections.connection() as connection:
            report = await self.rereader.read(connection, request.carrier_id, message_ids, dry_run=request.dry_run)
        self.report.add(report)
        if report.notifications:
            await self.wake(frozenset({OUTBOX}))
        if request.per_second is not None:
            await asyncio.sleep(max(0.0, self._began + self.report.messages / request.per_second - time.monotonic()))

    def _is_spent(self) -> bool:
        is_late = self.seconds is not None and time.monotonic() >= self._began + self.seconds
        return is_late or (self.messages_max is not None and self.report.messages >= self.messages_max)

    async def _settle_codes(self) -> None:
        """Note which open dead letters are about the codes of this call, and at the end resolve those whose code is known everywhere."""
        async with self.connections.connection() as connection:
            rows = await (await connection.execute(_SQL["open_codes"], self.request.scope)).fetchall()
        is_open = {dead_letter_id: (raw_type, raw_code) for dead_letter_id, raw_type, raw_code in rows}
        position = self.position
        learned = position.learned | {dead_letter_id for dead_letter_id, code in is_open.items() if code in self.report.codes}
        left = position.left | {dead_letter_id for dead_letter_id, code in is_open.items() if code in self.report.codes_left}
        # one too many says that there were more
        self.position = replace(position, learned=frozenset(sorted(learned)[:CODES_MAX]), left=frozenset(sorted(left)[: CODES_MAX + 1]))
        if self.is_done and len(left) <= CODES_MAX:
            for dead_letter_id in sorted((self.position.learned - left) & is_open.keys()):
                await self._resolve(CodeDeadLetter(self.request.carrier_id, *is_open[dead_letter_id], dead_letter_id))

    async def _resolve(self, code: CodeDeadLetter) -> None:
        request = RepairRequest(
            wanted=DeadLetterFilter(),
            ids=(code.dead_letter_id,),
            carriers=frozenset(self.rereader.carriers),
            actor=self.request.actor,
            why=self.request.why or "read again",
            run_id=uuid4(),
        )
        if self.position.began is not None:
            async with self.connections.connection() as connection:
                late = await conclude_code(connection, request, self.rereader, code, began=self.position.began)
            self.report.messages += late.messages
            self.report.corrected += late.corrected
            self.report.added += late.added
            self.report.transitions += late.transitions
            if late.transitions:
                await self.wake(frozenset({OUTBOX}))

    async def _record(self) -> None:
        request, report = self.request, self.report
        details: dict[str, Any] = {
            "why": request.why,
            "version": self.rereader.carriers[request.carrier_id].stable,
            **report.recorded,
            "done": self.is_done,
        }
        if request.since is not None:
            details["since"] = request.since.isoformat()
        if request.read_by is not None:
            details["read_by"] = request.read_by
        async with self.connections.connection() as connection, connection.transaction():
            await record_action(
                connection, actor=request.actor, verb="renormalize", target=f"carrier {request.carrier_id}", details=details
            )

    async def _count(self) -> None:
        if not self.is_done:
            async with self.connections.connection() as connection:
                ((messages,),) = await (await connection.execute(_SQL["about_messages"])).fetchall()
            self.remaining = max(1, messages - self.position.scanned)
