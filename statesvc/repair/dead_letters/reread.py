"""Dead letters of applied messages: rejected members and unknown codes.

Their messages are read again, as `renormalize` does, but these messages only. Events with a code
that come late: `statesvc.repair.renormalize.late_code`.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from statesvc.database.queries import queries
from statesvc.repair.dead_letters.dead_letter import Obstacle
from statesvc.repair.dead_letters.put_back import resolve
from statesvc.repair.dead_letters.replay_plan import Connection, OpenDeadLetter, RepairRequest
from statesvc.repair.renormalize.correction_plan import RenormalizeReport
from statesvc.repair.renormalize.history_walk import HistoryWalk, Rereader
from statesvc.repair.renormalize.late_code import (
    FIRST,
    UnknownCode,
    messages_with,
    transaction_id,
    wait_for_older_transactions,
)

_SQL = queries("statesvc.repair.dead_letters", "reread")

_EXAMPLES: Final = 5


async def reread_members(
    connection: Connection,
    request: RepairRequest,
    rereader: Rereader,
    dead_letters: Sequence[OpenDeadLetter],
) -> tuple[RenormalizeReport, Counter[Obstacle]]:
    """Resolve the dead letters of messages that are now read whole. Return the obstacles of others.

    At most MESSAGES_AT_ONCE messages.
    """
    by_carrier: dict[str, list[OpenDeadLetter]] = defaultdict(list)
    for each in dead_letters:
        by_carrier[each.carrier_id].append(each)
    whole, obstacles = RenormalizeReport(), Counter[Obstacle]()
    readable: list[int] = []
    for carrier_id, of_carrier in by_carrier.items():
        message_ids = [each.message_id for each in of_carrier if each.message_id is not None]
        report = await rereader.read(connection, carrier_id, message_ids)
        whole.add(report)
        for each in of_carrier:
            if each.message_id is None or each.message_id in report.unopened:
                obstacles[Obstacle.UNREADABLE] += 1
            elif each.message_id in report.rejected:
                obstacles[Obstacle.STILL_REJECTED] += 1
            else:
                readable.append(each.dead_letter_id)
    if readable:
        await resolve(connection, request, readable)
    return whole, obstacles


@dataclass(frozen=True, slots=True)
class CodeDeadLetter(UnknownCode):
    dead_letter_id: int


async def find_code(
    connection: Connection, rereader: Rereader, dead_letter_id: int
) -> CodeDeadLetter | Obstacle:
    """Return the code of an open dead letter, or why its events cannot be read again yet."""
    row = await (
        await connection.execute(_SQL["code_dead_letter"], {"dead_letter_id": dead_letter_id})
    ).fetchone()
    if row is None:
        raise LookupError(f"no dead letter of a code has the id {dead_letter_id}")
    carrier_id, raw_type, raw_code, resolution = row
    if resolution is not None:
        return Obstacle(resolution)
    code = CodeDeadLetter(carrier_id, raw_type, raw_code, dead_letter_id)
    return code if await _is_known(connection, rereader, code) else Obstacle.NO_MAPPING


async def _is_known(connection: Connection, rereader: Rereader, code: CodeDeadLetter) -> bool:
    """Return whether a mapping, or the carrier's present normalizer, knows the code.

    The normalizer is tried with an example.
    """
    ((mapped,),) = await (await connection.execute(_SQL["has_mapping"], code.parameters)).fetchall()
    if mapped:
        return True
    page = await messages_with(code, limit=_EXAMPLES)(connection, FIRST)
    examples = [message_id for message_id, _ in page.messages]
    return (
        bool(examples)
        and code.key
        in (await rereader.read(connection, code.carrier_id, examples, dry_run=True)).codes
    )


async def conclude_code(
    walk: HistoryWalk, request: RepairRequest, code: CodeDeadLetter, *, began: datetime
) -> None:
    """Resolve the dead letter, and read the events appended since `began` without the code.

    Workers that did not know the code yet appended them.
    """
    async with walk.connections.connection() as connection:
        async with connection.transaction():
            await resolve(connection, request, [code.dead_letter_id])
            resolved_by = await transaction_id(connection)
        await wait_for_older_transactions(connection, resolved_by)
    await walk.read(messages_with(code, since=began), FIRST, is_bounded=False)
