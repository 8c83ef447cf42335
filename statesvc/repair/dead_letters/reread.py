"""Dead letters of messages that took effect: members that were rejected, and codes that nobody knew. Their messages are read again.

It does what `renormalize` does, of these messages only. Events with a code that come late: `statesvc.repair.renormalize.late_code`.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from statesvc.database.queries import queries
from statesvc.files.archive_folder import ArchivePath
from statesvc.reading.code_mapping import Mappings
from statesvc.repair.dead_letters.dead_letter import Obstacle
from statesvc.repair.dead_letters.put_back import resolve
from statesvc.repair.dead_letters.replay_plan import Connection, OpenDeadLetter, RepairRequest
from statesvc.repair.renormalize.correction_plan import RenormalizeReport
from statesvc.repair.renormalize.late_code import (
    UnknownCode,
    messages_appended_since,
    messages_of,
    transaction_id,
    wait_for_older_transactions,
)
from statesvc.repair.renormalize.renormalize import RereadTask, reread

_SQL = queries("statesvc.repair.dead_letters", "reread")

MESSAGES_AT_ONCE: Final = 50
_EXAMPLES: Final = 5


@dataclass(slots=True)
class RereadResult:
    """Result of reading again. `obstacles` are of dead letters."""

    messages: int = 0
    corrected: int = 0
    added: int = 0
    transitions: int = 0
    obstacles: Counter[Obstacle] = field(default_factory=Counter)

    def add(self, report: RenormalizeReport) -> None:
        """Take in a part."""
        self.messages += report.messages
        self.corrected += report.corrected
        self.added += report.added
        self.transitions += report.transitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Rereader:
    """Dependencies of reading again. `writer`: the name that the log's batches carry. `archive`: the folder of older bodies."""

    keyring: Keyring
    carriers: Mapping[str, Carrier]
    writer: str
    archive: ArchivePath | None
    mappings: Mappings = field(default_factory=Mappings)

    async def read(
        self, connection: Connection, carrier_id: str, message_ids: Sequence[UUID], *, dry_run: bool = False
    ) -> RenormalizeReport:
        """Read up to MESSAGES_AT_ONCE messages by the stable version and the mappings of now; append what they lack."""
        await self.mappings.refresh(connection)
        task = RereadTask(
            carrier=self.carriers[carrier_id],
            keyring=self.keyring,
            writer=self.writer,
            dry_run=dry_run,
            archive=self.archive,
        )
        return await reread(connection, task, message_ids, self.mappings)


async def reread_members(
    connection: Connection, request: RepairRequest, rereader: Rereader, dead_letters: Sequence[OpenDeadLetter]
) -> RereadResult:
    """Resolve the dead letters of messages that are read whole now. At most MESSAGES_AT_ONCE of them."""
    by_carrier: dict[str, list[OpenDeadLetter]] = defaultdict(list)
    for each in dead_letters:
        by_carrier[each.carrier_id].append(each)
    result = RereadResult()
    readable: list[int] = []
    for carrier_id, of_carrier in by_carrier.items():
        message_ids = [each.message_id for each in of_carrier if each.message_id is not None]
        report = await rereader.read(connection, carrier_id, message_ids)
        result.add(report)
        for each in of_carrier:
            if each.message_id is None or each.message_id in report.unopened:
                result.obstacles[Obstacle.UNREADABLE] += 1
            elif each.message_id in report.rejected:
                result.obstacles[Obstacle.STILL_REJECTED] += 1
            else:
                readable.append(each.dead_letter_id)
    if readable:
        await resolve(connection, request, readable)
    return result


@dataclass(frozen=True, slots=True)
class CodeDeadLetter(UnknownCode):
    """The code of a dead letter."""

    dead_letter_id: int


async def find_code(connection: Connection, rereader: Rereader, dead_letter_id: int) -> CodeDeadLetter | Obstacle:
    """Return the code of an open dead letter, or why its events cannot be read again yet."""
    row = await (await connection.execute(_SQL["code_dead_letter"], {"dead_letter_id": dead_letter_id})).fetchone()
    if row is None:
        raise LookupError(f"no dead letter of a code has the id {dead_letter_id}")
    carrier_id, raw_type, raw_code, resolution = row
    if resolution is not None:
        return Obstacle(resolution)
    code = CodeDeadLetter(carrier_id, raw_type, raw_code, dead_letter_id)
    return code if await _is_known(connection, rereader, code) else Obstacle.NO_MAPPING


async def _is_known(connection: Connection, rereader: Rereader, code: CodeDeadLetter) -> bool:
    """Return whether a mapping, or the carrier's normalizer of today, knows the code. The normalizer is asked by example."""
    ((mapped,),) = await (await connection.execute(_SQL["has_mapping"], code.parameters)).fetchall()
    if mapped:
        return True
    examples = await messages_of(connection, code, limit=_EXAMPLES)
    return bool(examples) and code.is_in((await rereader.read(connection, code.carrier_id, examples, dry_run=True)).codes)


def still_unknown(report: RenormalizeReport, code: CodeDeadLetter, asked: int) -> bool:
    """Return whether any of the events is as unknown as before. A message that is not in the tables any more is not read at all."""
    return code.is_in(report.codes_left) or report.messages < asked


async def conclude_code(
    connection: Connection, request: RepairRequest, rereader: Rereader, code: CodeDeadLetter, *, began: datetime
) -> RereadResult:
    """Resolve the dead letter, and read what was appended since `began` by workers that did not know the code yet."""
    async with connection.transaction():
        await resolve(connection, request, [code.dead_letter_id])
        resolved_by = await transaction_id(connection)
    await wait_for_older_transactions(connection, resolved_by)
    result = RereadResult()
    async for late in messages_appended_since(connection, code, since=began, at_once=MESSAGES_AT_ONCE):
        result.add(await rereader.read(connection, code.carrier_id, late))
    return result
