"""Open dead letters by what went wrong: the page that on-call looks at first."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import class_row

from statesvc.database.queries import queries
from statesvc.repair.dead_letters.dead_letter import DeadLetterKind, Filter

_SQL = queries("statesvc.repair.dead_letters", "groups")

COUNT_MAX: Final = 100_000
"""Letters that are looked at, the oldest first."""
EXAMPLES_MAX: Final = 3
DETAILS_MAX: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Open letters of one kind, cause and carrier. `details`: `{"detail", "letters"}`, the most frequent first."""

    kind: DeadLetterKind
    cause: str
    carrier_id: str
    letters: int
    oldest_at: datetime
    newest_at: datetime
    dead_letter_ids: list[int]
    details: list[dict[str, Any]]


async def group_dead_letters(connection: AsyncConnection[Any], wanted: Filter) -> tuple[list[Group], bool]:
    """The groups, the largest first; and whether there are more letters than were looked at."""
    cursor = connection.cursor(row_factory=class_row(Group))
    await cursor.execute(
        _SQL["groups"], {**wanted.parameters, "count_max": COUNT_MAX, "examples_max": EXAMPLES_MAX, "details_max": DETAILS_MAX}
    )
    groups = await cursor.fetchall()
    return groups, sum(group.letters for group in groups) >= COUNT_MAX
