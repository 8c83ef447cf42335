"""Codes that are read only by the category which the carrier prints with them: right as far as it goes, and worth checking."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import class_row

from statesvc.database.queries import queries

_SQL = queries("statesvc.inbox.rollouts", "category_readings")

COUNT_MAX: Final = 200_000
"""Events that are examined."""
EXAMPLES_MAX: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ByCategory:
    """One such code."""

    carrier_id: str
    raw_type: str | None
    raw_code: str | None
    events: int
    shipments: int
    since: datetime
    message_ids: list[UUID]


async def codes_by_category(connection: AsyncConnection[Any]) -> list[ByCategory]:
    """Those that no row maps, the most frequent first."""
    cursor = connection.cursor(row_factory=class_row(ByCategory))
    await cursor.execute(_SQL["by_category"], {"count_max": COUNT_MAX, "examples_max": EXAMPLES_MAX})
    return await cursor.fetchall()
