"""Letters of unknown codes: once the code is known, all events with it are read again and corrected, then the letter is resolved.

A worker that claimed before the code was known may append one more event with it at any moment until its batch commits, and joins
the open letter. So the letter is resolved first, then whoever wrote at that time is waited for, then what came late is read again.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from events.event import Raw
from events.identity import carrier_code
from events.sql.queries import queries
from statesvc.dead_letters.obstacle import Obstacle
from statesvc.dead_letters.replay import Connection, Order, resolve
from statesvc.dead_letters.rereader import MESSAGES_AT_ONCE, Rereader, Result
from statesvc.renormalize.plan import Report

_SQL = queries("statesvc.dead_letters", "code")

LISTED_AT_ONCE: Final = 20_000
FIRST: Final = UUID(int=0)
_EXAMPLES: Final = 5
_WRITERS_SECONDS: Final = 10.0
_LATE: Final = timedelta(minutes=5)
"""An event's time is taken before its transaction commits; none takes so long."""
Told = Callable[[int, int], Awaitable[None]]
"""`(messages read since the last call, messages left as far as is known)`."""


@dataclass(frozen=True, slots=True)
class UnknownCode:
    """What a letter is about. Type and code as the carrier prints them; None: it prints none."""

    dead_letter_id: int
    carrier_id: str
    raw_type: str | None
    raw_code: str | None

    @property
    def parameters(self) -> dict[str, Any]:
        """For the statements."""
        return {
            "carrier_id": self.carrier_id,
            "raw_type": self.raw_type,
            "raw_code": self.raw_code,
            "carrier_code": carrier_code(Raw(type=self.raw_type, code=self.raw_code)),
        }

    def is_in(self, codes: set[tuple[str | None, str | None]]) -> bool:
        """Whether a report names it."""
        return (self.raw_type, self.raw_code) in codes


async def find_code(connection: Connection, dead_letter_id: int) -> UnknownCode | Obstacle:
    """The code of an open letter, or what became of it."""
    row = await (await connection.execute(_SQL["code_letter"], {"dead_letter_id": dead_letter_id})).fetchone()
    if row is None:
        raise LookupError(f"no letter of a code has the id {dead_letter_id}")
    carrier_id, raw_type, raw_code, resolution = row
    return Obstacle(resolution) if resolution else UnknownCode(dead_letter_id, carrier_id, raw_type, raw_code)


async def messages_of(
    connection: Connection, code: UnknownCode, *, after: UUID = FIRST, since: datetime | None = None, limit: int = LISTED_AT_ONCE
) -> list[UUID]:
    """The next messages that said the code while nobody knew it, in the order of their ids."""
    cursor = await connection.execute(
        _SQL["messages_of_code"], {**code.parameters, "after": after, "since": since, "limit": limit}, binary=True
    )
    return [message_id for (message_id,) in await cursor.fetchall()]


async def is_known(connection: Connection, rereader: Rereader, code: UnknownCode, *, actor: str) -> bool:
    """Whether a mapping, or the carrier's normalizer of today, knows the code. The normalizer is asked by example."""
    ((mapped,),) = await (await connection.execute(_SQL["has_mapping"], code.parameters)).fetchall()
    if mapped:
        return True
    examples = await messages_of(connection, code, limit=_EXAMPLES)
    return bool(examples) and code.is_in((await rereader.read(connection, code.carrier_id, examples, actor=actor, dry_run=True)).codes)


async def read_code(connection: Connection, order: Order, rereader: Rereader, dead_letter_id: int, told: Told) -> Result:
    """Reads all events with the code again and resolves the letter; without a mapping it does nothing and says so."""
    result = Result()
    began = await clock(connection)
    code = await find_code(connection, dead_letter_id)
    if isinstance(code, Obstacle):
        result.obstacles[code] += 1
        return result
    if not await is_known(connection, rereader, code, actor=order.actor):
        result.obstacles[Obstacle.NO_MAPPING] += 1
        return result
    left = False
    async for report, asked, remaining in _parts(connection, order, rereader, code):
        result.add(report)
        left |= still_unknown(report, code, asked)
        await told(asked, remaining)
    if left:
        result.obstacles[Obstacle.STILL_UNKNOWN] += 1
    else:
        for report in await conclude(connection, order, rereader, code, began):
            result.add(report)
    return result


def still_unknown(report: Report, code: UnknownCode, asked: int) -> bool:
    """Whether any of the events is as unknown as before. A message that has no verdict in the tables any more is not read at all."""
    return code.is_in(report.codes_left) or report.messages < asked


async def clock(connection: Connection) -> datetime:
    """The database's."""
    ((now,),) = await (await connection.execute(_SQL["tick"])).fetchall()
    moment: datetime = now
    return moment


async def conclude(connection: Connection, order: Order, rereader: Rereader, code: UnknownCode, began: datetime) -> list[Report]:
    """Resolves the letter, and reads what was appended since `began` by workers that did not know the code yet."""
    async with connection.transaction():
        await resolve(connection, order, [code.dead_letter_id])
        ((resolved_by,),) = await (await connection.execute(_SQL["transaction_id"])).fetchall()
    deadline = time.monotonic() + _WRITERS_SECONDS
    while time.monotonic() < deadline:
        ((writing,),) = await (await connection.execute(_SQL["older_writers"], {"transaction_id": resolved_by})).fetchall()
        if not writing:
            break
        await asyncio.sleep(0.05)
    reports, after = [], FIRST
    while late := await messages_of(connection, code, after=after, since=began - _LATE, limit=MESSAGES_AT_ONCE):
        after = late[-1]
        reports.append(await rereader.read(connection, code.carrier_id, late, actor=order.actor))
    return reports


async def _parts(connection: Connection, order: Order, rereader: Rereader, code: UnknownCode) -> AsyncIterator[tuple[Report, int, int]]:
    """Report, messages asked for, messages left as far as they are listed."""
    after = FIRST
    while listed := await messages_of(connection, code, after=after):
        after = listed[-1]
        for start in range(0, len(listed), MESSAGES_AT_ONCE):
            part = listed[start : start + MESSAGES_AT_ONCE]
            yield await rereader.read(connection, code.carrier_id, part, actor=order.actor), len(part), len(listed) - start - len(part)
