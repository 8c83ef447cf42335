"""A code that nobody knew, and the events with it that come late.

A worker that claimed before a code was known may append one more event with it at any time until its batch commits. So a replay that
has read all events with a code again resolves its dead letter first, then waits for the transactions of that time, then reads what came
meanwhile.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from events.identity.ids import listed_prefix
from statesvc.database.queries import queries

_SQL = queries("statesvc.repair.renormalize", "late_code")

Connection = AsyncConnection[Any]
LISTED_AT_ONCE: Final = 20_000
FIRST: Final = UUID(int=0)
_WRITERS_SECONDS: Final = 10.0
_LATE: Final = timedelta(minutes=5)
"""An event's time is taken before its transaction commits; none takes so long."""


@dataclass(frozen=True, slots=True)
class UnknownCode:
    """Type and code as the carrier prints them; None: it prints none; `text`: any text in its place."""

    carrier_id: str
    raw_type: str | None
    raw_code: str | None

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the statements."""
        return {
            "carrier_id": self.carrier_id,
            "raw_type": self.raw_type,
            "raw_code": self.raw_code,
            "carrier_code": listed_prefix(self.raw_type, self.raw_code),
        }

    def is_in(self, codes: set[tuple[str | None, str | None]]) -> bool:
        """Return whether a report names it."""
        return (self.raw_type, self.raw_code) in codes


async def messages_of(
    connection: Connection, code: UnknownCode, *, after: UUID = FIRST, since: datetime | None = None, limit: int = LISTED_AT_ONCE
) -> list[UUID]:
    """Return the next messages with the code from when it was unknown, in the order of their ids."""
    cursor = await connection.execute(
        _SQL["messages_of_code"], {**code.parameters, "after": after, "since": since, "limit": limit}, binary=True
    )
    return [message_id for (message_id,) in await cursor.fetchall()]


async def clock(connection: Connection) -> datetime:
    """Return the database's clock."""
    ((now,),) = await (await connection.execute(_SQL["tick"])).fetchall()
    assert isinstance(now, datetime)  # noqa: S101 - a timestamptz
    return now


async def transaction_id(connection: Connection) -> int:
    ((number,),) = await (await connection.execute(_SQL["transaction_id"])).fetchall()
    return int(number)


async def wait_for_older_transactions(connection: Connection, resolved_by: int) -> None:
    """Wait until every transaction that writes and that began before `resolved_by` ended is over; not for ever."""
    deadline = time.monotonic() + _WRITERS_SECONDS
    while time.monotonic() < deadline:
        ((writing,),) = await (await connection.execute(_SQL["older_writers"], {"transaction_id": resolved_by})).fetchall()
        if not writing:
            break
        await asyncio.sleep(0.05)


async def messages_appended_since(connection: Connection, code: UnknownCode, *, since: datetime, at_once: int) -> AsyncIterator[list[UUID]]:
    """Yield the messages whose events with the code were recorded since then and were not corrected, some at a time."""
    after = FIRST
    while late := await messages_of(connection, code, after=after, since=since - _LATE, limit=at_once):
        after = late[-1]
        yield late
