"""Reads all messages of a carrier again in bounded calls: safe to stop anywhere and to repeat.

A call answers the position where the next goes on. Each is an operator action of its own, so that
the work is on record however the run ends. Dead letters of codes that are known now stay open: a
replay resolves them, and reads what workers append meanwhile.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from statesvc.database.queries import queries
from statesvc.repair.renormalize.correction_plan import RenormalizeReport
from statesvc.repair.renormalize.history_walk import Connection, HistoryWalk, WalkPage
from statesvc.repair.renormalize.late_code import FIRST

_SQL = queries("statesvc.addons.mappings", "history_reread")

_SCANNED_AT_ONCE: Final = 2_000


class ReadingChange(BaseModel):
    """Events that would be read differently."""

    model_config = ConfigDict(populate_by_name=True, frozen=True)

    from_: Annotated[
        str,
        Field(
            alias="from",
            description="The status in effect; `none`: it moves none.",
            examples=["none"],
        ),
    ]
    to: Annotated[str, Field(examples=["delivery_attempted"])]
    events: int


class StatusChange(BaseModel):
    """Shipments that would get another status."""

    model_config = ConfigDict(populate_by_name=True, frozen=True)

    from_: Annotated[str, Field(alias="from", examples=["unknown"])]
    to: Annotated[str, Field(examples=["delivery_attempted"])]
    shipments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRequest:
    """A request to read messages again.

    `read_by`: only those that this version of the carrier's code read.
    """

    actor: str
    why: str = ""
    since: datetime | None = None
    read_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPosition:
    """Position of a run. `scanned`: messages of all carriers that it has passed."""

    after: UUID = FIRST
    scanned: int = 0


@dataclass(slots=True)
class HistoryReread:
    walk: HistoryWalk
    request: HistoryRequest
    position: HistoryPosition = field(default_factory=HistoryPosition)
    page: int = _SCANNED_AT_ONCE
    is_done: bool = field(init=False, default=False)
    remaining: int = field(init=False, default=0)
    """About how many messages of all carriers the run has still to pass."""

    @property
    def report(self) -> RenormalizeReport:
        return self.walk.report

    async def run(self) -> RenormalizeReport:
        """Read from the position on.

        The corrections are in the log, and on record, when it returns.
        """
        self.position, self.is_done = await self.walk.read(self._next_page, self.position)
        if not self.walk.dry_run:
            await self._record()
        await self._count()
        return self.report

    async def _next_page(
        self, connection: Connection, position: HistoryPosition
    ) -> WalkPage[HistoryPosition]:
        carrier_id, request = self.walk.carrier_id, self.request
        read_by = f"{carrier_id}@{request.read_by}" if request.read_by else None
        parameters = {
            "carrier_id": carrier_id,
            "since": request.since,
            "read_by": read_by,
            "after": position.after,
            "limit": self.page,
        }
        scanned = await (
            await connection.execute(_SQL["next_messages"], parameters, binary=True)
        ).fetchall()
        wanted = [
            (message_id, replace(position, after=message_id, scanned=position.scanned + count))
            for count, (message_id, is_wanted) in enumerate(scanned, start=1)
            if is_wanted
        ]
        after = scanned[-1][0] if scanned else position.after
        return WalkPage(
            wanted,
            replace(position, after=after, scanned=position.scanned + len(scanned)),
            is_last=len(scanned) < self.page,
        )

    async def _record(self) -> None:
        request = self.request
        details: dict[str, Any] = {"why": request.why}
        if request.since is not None:
            details["since"] = request.since.isoformat()
        if request.read_by is not None:
            details["read_by"] = request.read_by
        await self.walk.record(request.actor, details, is_done=self.is_done)

    async def _count(self) -> None:
        if not self.is_done:
            async with self.walk.connections.connection() as connection:
                ((messages,),) = await (await connection.execute(_SQL["about_messages"])).fetchall()
            self.remaining = max(1, messages - self.position.scanned)
