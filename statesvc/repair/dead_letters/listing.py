"""Dead letters, listed and shown. Holds nothing of a message: causes and places, never values."""

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import class_row

from events.event import Raw
from events.identity import carrier_code
from statesvc.database.queries import queries
from statesvc.repair.dead_letters.dead_letter import DeadLetter, Filter

_SQL = queries("statesvc.repair.dead_letters", "listing")

COUNT_MAX: Final = 10_000
"""Events that are looked at to count an unknown code."""
EXAMPLES_MAX: Final = 5
NEWEST: Final = 2**63 - 1
"""Above the id of every dead letter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """What the log holds of an unknown code: how often it was said, of how many shipments, and in which messages lately.

    `counts_capped`: the counts mean at least so many.
    """

    events: int
    shipments: int
    counts_capped: bool
    message_ids: list[UUID]


async def list_dead_letters(
    connection: AsyncConnection[Any], wanted: Filter, *, before: int = NEWEST, limit: int
) -> tuple[list[DeadLetter], int | None]:
    """A page, newest first, of those with an id below `before`; and the `before` of the next page (None: this is the last)."""
    cursor = connection.cursor(row_factory=class_row(DeadLetter))
    await cursor.execute(
        _SQL["list_dead_letters"],
        {**wanted.parameters, "before": before, "limit": limit + 1},
    )
    letters = await cursor.fetchall()
    return letters[:limit], letters[limit - 1].dead_letter_id if len(letters) > limit else None


async def show_dead_letter(connection: AsyncConnection[Any], dead_letter_id: int) -> tuple[DeadLetter, Statements | None] | None:
    """One dead letter, and of an unknown code what the log holds of it."""
    letters = connection.cursor(row_factory=class_row(DeadLetter))
    await letters.execute(_SQL["dead_letter"], {"dead_letter_id": dead_letter_id})
    letter = await letters.fetchone()
    if letter is None:
        return None
    if letter.kind != "code":
        return letter, None
    said = connection.cursor(row_factory=class_row(Statements))
    await said.execute(
        _SQL["statements_of_code"],
        {
            "carrier_id": letter.carrier_id,
            "carrier_code": carrier_code(Raw(type=letter.raw_type, code=letter.raw_code)),
            "raw_type": letter.raw_type,
            "raw_code": letter.raw_code,
            "count_max": COUNT_MAX,
            "examples_max": EXAMPLES_MAX,
        },
    )
    return letter, await said.fetchone()
