"""The walk over history: reads messages again in parts, and appends the differences.

Its caller chooses the messages, in pages between positions of its own. Each part is its own append,
and a bounded walk answers the position where the next goes on: an interrupted walk loses no work,
and a repeated walk appends no event twice.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar
from uuid import UUID

from psycopg import AsyncConnection

from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from statesvc.database.pool import Connections
from statesvc.database.wakeups.wakeup import OUTBOX
from statesvc.files.archive_folder import ArchivePath
from statesvc.log.actions import record_action
from statesvc.reading.code_mapping import Mappings
from statesvc.repair.renormalize.correction_plan import CodeKey, RenormalizeReport
from statesvc.repair.renormalize.renormalize import RereadTask, reread

MESSAGES_AT_ONCE: Final = 50
Connection = AsyncConnection[Any]
Position = TypeVar("Position")

# Notifies listeners on these channels; called after the commit.
Wake = Callable[[frozenset[str]], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rereader:
    """Dependencies of reading again.

    `writer`: the name that the log's batches carry. `archive`: the folder of older bodies.
    """

    keyring: Keyring
    carriers: Mapping[str, Carrier]
    writer: str
    archive: ArchivePath | None
    mappings: Mappings = field(default_factory=Mappings)

    async def read(
        self,
        connection: Connection,
        carrier_id: str,
        message_ids: Sequence[UUID],
        *,
        dry_run: bool = False,
        notify: bool = True,
    ) -> RenormalizeReport:
        """Read up to MESSAGES_AT_ONCE messages by the stable version and present mappings.

        Append the gaps.
        """
        # for each part: a code that is mapped during the walk is known to the rest of it
        await self.mappings.refresh(connection)
        task = RereadTask(
            carrier=self.carriers[carrier_id],
            keyring=self.keyring,
            writer=self.writer,
            dry_run=dry_run,
            notify=notify,
            archive=self.archive,
        )
        return await reread(connection, task, message_ids, self.mappings)


class WalkPage(NamedTuple, Generic[Position]):
    """Some messages, each with the position after it, and the position after the page.

    None: no walk stops there.
    """

    messages: Sequence[tuple[UUID, Position | None]]
    end: Position
    is_last: bool


# Returns the page after a position.
WalkPages = Callable[[Connection, Position], Awaitable[WalkPage[Position]]]


@dataclass(slots=True, kw_only=True)
class HistoryWalk:
    """Reads messages of a carrier again.

    `messages_max`, `seconds` None: to the end. `per_second`: messages.
    """

    connections: Connections
    rereader: Rereader
    wake: Wake
    carrier_id: str
    messages_max: int | None = None
    seconds: float | None = None
    per_second: float | None = None
    dry_run: bool = False
    notify: bool = True
    after_part: Callable[[RenormalizeReport, int], None] = lambda _report, _left: None
    """Called with the report of a part, and how many messages of its page are left."""
    report: RenormalizeReport = field(init=False, default_factory=RenormalizeReport)
    asked: int = field(init=False, default=0)
    _began: float = field(init=False, default_factory=time.monotonic)

    async def read(
        self, pages: WalkPages[Position], position: Position, *, is_bounded: bool = True
    ) -> tuple[Position, bool]:
        """Read from a position on; return the new position, and whether the end is reached."""
        while True:
            async with self.connections.connection() as connection:
                page = await pages(connection, position)
            unread = page.messages
            while unread:
                size = self._part_size() if is_bounded else MESSAGES_AT_ONCE
                part, unread = unread[:size], unread[size:]
                await self._read_part([message_id for message_id, _ in part], left=len(unread))
                _, reached = part[-1]
                # a message without a position of its own is no place to stop: the next call would
                # begin behind the page, and never read the rest of it
                if unread and reached is not None and is_bounded and self._is_spent():
                    return reached, False
            position = page.end
            if page.is_last or (is_bounded and self._is_spent()):
                return position, page.is_last

    def leaves_unknown(self, code: CodeKey) -> bool:
        """Return whether an event with the code is as unknown as before.

        Messages that are no longer in the tables are not read.
        """
        return code in self.report.codes_left or self.report.messages < self.asked

    async def record(self, actor: str, details: Mapping[str, Any], *, is_done: bool) -> None:
        version = self.rereader.carriers[self.carrier_id].stable
        stated = {**details, "version": version, **self.report.recorded, "done": is_done}
        if not self.notify:
            stated["notify"] = False
        async with self.connections.connection() as connection, connection.transaction():
            await record_action(
                connection,
                actor=actor,
                verb="renormalize",
                target=f"carrier {self.carrier_id}",
                details=stated,
            )

    async def _read_part(self, message_ids: Sequence[UUID], *, left: int) -> None:
        # a connection for each part: a walk of hours must not keep one from a small pool
        async with self.connections.connection() as connection:
            report = await self.rereader.read(
                connection,
                self.carrier_id,
                message_ids,
                dry_run=self.dry_run,
                notify=self.notify,
            )
        self.report.add(report)
        self.asked += len(message_ids)
        if report.notifications:
            await self.wake(frozenset({OUTBOX}))
        self.after_part(report, left)
        if self.per_second is not None:
            # by the whole walk, not by the part: a slow part is made up for
            await asyncio.sleep(
                max(0.0, self._began + self.asked / self.per_second - time.monotonic())
            )

    def _part_size(self) -> int:
        left = MESSAGES_AT_ONCE if self.messages_max is None else self.messages_max - self.asked
        return max(1, min(MESSAGES_AT_ONCE, left))

    def _is_spent(self) -> bool:
        is_late = self.seconds is not None and time.monotonic() >= self._began + self.seconds
        return is_late or (self.messages_max is not None and self.asked >= self.messages_max)
