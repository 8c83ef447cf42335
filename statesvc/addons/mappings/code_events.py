"""The events of the log that have a code, whatever they were read as."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, NamedTuple
from uuid import UUID

from psycopg import AsyncConnection
from pydantic import Field

from events.clear_part import Digest
from events.event import Raw
from events.identity.ids import carrier_code
from statesvc.addons.mappings.mapped_code import MappedCode, PrintedCode
from statesvc.addons.mappings.samples import COUNT_MAX, SampleRow
from statesvc.database.queries import queries
from statesvc.http.paging import RowNumber
from statesvc.repair.renormalize.late_code import UnknownCode

_SQL = queries("statesvc.addons.mappings", "code_events")

# Events of the log that a pass reads in a statement.
PAGE: Final = 20_000
SEARCHED_MAX: Final = 50_000
CODES_TRIED_MAX: Final = 3
Connection = AsyncConnection[Any]


class LogPosition(NamedTuple):
    """An event's place in the order of the log."""

    batch_id: RowNumber = 0
    ordinal: Annotated[int, Field(ge=-1, lt=2**31)] = -1


BEGINNING: Final = LogPosition()


class LogPage(NamedTuple):
    """A page of the log. `is_last`: there was no more."""

    last: LogPosition
    message_ids: list[UUID]
    is_last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeEvents:
    """Events with a code. `is_capped`: older events of the log were not searched."""

    events: int
    shipments: int
    messages: int
    is_capped: bool
    newest: list[SampleRow]


async def next_of_log(
    connection: Connection, code: MappedCode, *, after: LogPosition, limit: int = PAGE
) -> LogPage:
    """Return the messages with the code among the next events above a position."""
    parameters = {**_parameters(code), **after._asdict(), "limit": limit}
    row = await (await connection.execute(_SQL["next_of_log"], parameters)).fetchone()
    if row is None:
        return LogPage(after, [], is_last=True)
    batch_id, ordinal, seen, message_ids = row
    return LogPage(LogPosition(batch_id, ordinal), message_ids, is_last=seen < limit)


async def events_with_code(
    connection: Connection, code: MappedCode, *, newest: int = 0
) -> CodeEvents:
    """Count the events with the code, and return so many of them, the newest first."""
    parameters = {**_parameters(code), "count_max": COUNT_MAX, "searched_max": SEARCHED_MAX}
    rows = await (
        await connection.execute(
            _SQL["events_with_code"], {**parameters, "newest": newest}, prepare=False
        )
    ).fetchall()
    events, shipments, messages, indexed, searched = rows[0][:5]
    return CodeEvents(
        events=events,
        shipments=shipments,
        messages=messages,
        is_capped=indexed >= COUNT_MAX or searched >= SEARCHED_MAX,
        newest=[SampleRow(*row[5:]) for row in rows if row[5] is not None],
    )


async def has_events(connection: Connection, code: MappedCode) -> bool:
    """Return whether an event has the code, as far as events are searched for it."""
    return (await events_with_code(connection, code)).events > 0


async def as_events_have_it(
    connection: Connection, printed: PrintedCode, digest: Digest
) -> PrintedCode:
    """Split `TYPE/CODE` into both parts, if events have these and not the whole.

    Lists and histories join them.
    """
    code = printed.raw_code or ""
    if (
        printed.raw_type is not None
        or "/" not in code
        or await has_events(connection, printed.clear(digest))
    ):
        return printed
    slashes = [
        place
        for place, character in enumerate(code)
        if character == "/" and 0 < place < len(code) - 1
    ]
    for place in slashes[:CODES_TRIED_MAX]:
        split = replace(printed, raw_type=code[:place], raw_code=code[place + 1 :])
        if await has_events(connection, split.clear(digest)):
            return split
    return printed


async def open_code_dead_letter(connection: Connection, code: UnknownCode) -> int | None:
    row = await (
        await connection.execute(_SQL["open_code_dead_letter"], code.parameters)
    ).fetchone()
    return None if row is None else int(row[0])


def _parameters(code: MappedCode) -> dict[str, Any]:
    return {
        **code._asdict(),
        "carrier_code": carrier_code(Raw(type=code.raw_type, code=code.raw_code)),
    }
