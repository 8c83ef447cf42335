"""Letters of unknown codes: once the code is known, all events with it are read again and corrected, then the letter is resolved.

Events with it that come late: `statesvc.repair.renormalize.late_code`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from statesvc.database.queries import queries
from statesvc.repair.dead_letters.obstacle import Obstacle
from statesvc.repair.dead_letters.put_back import Connection, Order, resolve
from statesvc.repair.dead_letters.rereader import MESSAGES_AT_ONCE, Rereader, Result
from statesvc.repair.renormalize.correction_plan import RenormalizeReport
from statesvc.repair.renormalize.late_code import FIRST, UnknownCode, came_late, clock, messages_of, outlast_writers, transaction_id

_SQL = queries("statesvc.repair.dead_letters", "unknown_code")

_EXAMPLES: Final = 5
Told = Callable[[int, int], Awaitable[None]]
"""`(messages read since the last call, messages left as far as is known)`."""


@dataclass(frozen=True, slots=True)
class CodeLetter(UnknownCode):
    """What a letter is about."""

    dead_letter_id: int


async def find_code(connection: Connection, dead_letter_id: int) -> CodeLetter | Obstacle:
    """The code of an open letter, or what became of it."""
    row = await (await connection.execute(_SQL["code_letter"], {"dead_letter_id": dead_letter_id})).fetchone()
    if row is None:
        raise LookupError(f"no letter of a code has the id {dead_letter_id}")
    carrier_id, raw_type, raw_code, resolution = row
    return Obstacle(resolution) if resolution else CodeLetter(carrier_id, raw_type, raw_code, dead_letter_id)


async def is_known(connection: Connection, rereader: Rereader, code: CodeLetter, *, actor: str) -> bool:
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


def still_unknown(report: RenormalizeReport, code: CodeLetter, asked: int) -> bool:
    """Whether any of the events is as unknown as before. A message that has no verdict in the tables any more is not read at all."""
    return code.is_in(report.codes_left) or report.messages < asked


async def conclude(connection: Connection, order: Order, rereader: Rereader, code: CodeLetter, began: datetime) -> list[RenormalizeReport]:
    """Resolves the letter, and reads what was appended since `began` by workers that did not know the code yet."""
    async with connection.transaction():
        await resolve(connection, order, [code.dead_letter_id])
        resolved_by = await transaction_id(connection)
    await outlast_writers(connection, resolved_by)
    return [
        await rereader.read(connection, code.carrier_id, late, actor=order.actor)
        async for late in came_late(connection, code, since=began, at_once=MESSAGES_AT_ONCE)
    ]


async def _parts(
    connection: Connection, order: Order, rereader: Rereader, code: CodeLetter
) -> AsyncIterator[tuple[RenormalizeReport, int, int]]:
    """RenormalizeReport, messages asked for, messages left as far as they are listed."""
    after = FIRST
    while listed := await messages_of(connection, code, after=after):
        after = listed[-1]
        for start in range(0, len(listed), MESSAGES_AT_ONCE):
            part = listed[start : start + MESSAGES_AT_ONCE]
            yield await rereader.read(connection, code.carrier_id, part, actor=order.actor), len(part), len(listed) - start - len(part)
