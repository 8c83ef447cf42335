"""An unknown code, and the events with it that come late.

A worker that claimed before a code was known may append another event with it at any time until its
batch commits. So a replay that has read all events with a code again resolves its dead letter
first, then waits for the transactions of that time, then reads the late events.
"""

import asyncio
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from events.identity.ids import listed_prefix
from statesvc.database.queries import queries
from statesvc.repair.renormalize.correction_plan import CodeKey
from statesvc.repair.renormalize.history_walk import Connection, WalkPage, WalkPages

_SQL = queries("statesvc.repair.renormalize", "late_code")

LISTED_AT_ONCE: Final = 20_000
FIRST: Final = UUID(int=0)
_WRITERS_SECONDS: Final = 10.0
# An event's time is taken before its transaction commits; none takes so long.
_LATE: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class UnknownCode:
    """Type and code as the carrier prints them; None: absent; `text`: any text in its place."""

    carrier_id: str
    raw_type: str | None
    raw_code: str | None

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "carrier_id": self.carrier_id,
            "raw_type": self.raw_type,
            "raw_code": self.raw_code,
            "carrier_code": listed_prefix(self.raw_type, self.raw_code),
        }

    @property
    def key(self) -> CodeKey:
        return self.raw_type, self.raw_code


def messages_with(
    code: UnknownCode, *, since: datetime | None = None, limit: int = LISTED_AT_ONCE
) -> WalkPages[UUID]:
    """Return the pages of a walk over messages with a code, from the start of its being unknown.

    `since`: of those appended since then.
    """

    async def page(connection: Connection, after: UUID) -> WalkPage[UUID]:
        late = None if since is None else since - _LATE
        parameters = {**code.parameters, "after": after, "since": late, "limit": limit}
        rows = await (
            await connection.execute(_SQL["messages_of_code"], parameters, binary=True)
        ).fetchall()
        message_ids = [message_id for (message_id,) in rows]
        return WalkPage(
            [*zip(message_ids, message_ids, strict=True)],
            [after, *message_ids][-1],
            is_last=len(message_ids) < limit,
        )

    return page


async def clock(connection: Connection) -> datetime:
    ((now,),) = await (await connection.execute(_SQL["tick"])).fetchall()
    assert isinstance(now, datetime)  # noqa: S101 - a timestamptz
    return now


async def transaction_id(connection: Connection) -> int:
    ((number,),) = await (await connection.execute(_SQL["transaction_id"])).fetchall()
    return int(number)


async def wait_for_older_transactions(connection: Connection, resolved_by: int) -> None:
    """Wait for all writing transactions that began before `resolved_by` ended; not for ever."""
    deadline = time.monotonic() + _WRITERS_SECONDS
    while time.monotonic() < deadline:
        ((writing,),) = await (
            await connection.execute(_SQL["older_writers"], {"transaction_id": resolved_by})
        ).fetchall()
        if not writing:
            break
        # after the deadline the walk goes on: an append that commits later raises the dead letter
        # of the code anew
        await asyncio.sleep(0.05)
