"""The partitions that the service needs at start: a missing one fails a write or hides history."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from psycopg import AsyncConnection

from statesvc.database.queries import queries

_SQL = queries("statesvc.database", "partitions")


@dataclass(frozen=True, slots=True)
class MissingPartition:
    """A partition that is not attached.

    `is_there`: a table has its name. `held`: sealed entries were recorded in its time.
    """

    table: str
    name: str
    begins: date
    ends: date
    is_there: bool
    held: bool

    @property
    def can_be_made(self) -> bool:
        """True if a new empty partition will do."""
        return not self.is_there and not self.held

    def __str__(self) -> str:
        if self.is_there:
            return (
                f"the table statesvc.{self.name} is no partition of statesvc.{self.table}: as the"
                f" owner, ALTER TABLE statesvc.{self.table} ATTACH PARTITION statesvc.{self.name}"
                f" FOR VALUES FROM ('{self.begins} 00:00+00') TO ('{self.ends} 00:00+00'), or"
                " rename it where it is something else"
            )
        if self.held:
            return (
                f"the partition statesvc.{self.name} is missing, and sealed entries were recorded"
                " in its time: restore it from a backup; where it was empty, `SELECT"
                " statesvc.ensure_partitions()` makes a present one anew; `statesvc verify` names"
                " what is lost"
            )
        return (
            f"the partition statesvc.{self.name} is missing and could not be made: `SELECT"
            " statesvc.ensure_partitions()` says why"
        )


class MissingPartitionError(RuntimeError):
    """The service must not start; the message names the partitions and the remedy."""

    def __init__(self, missing: Sequence[MissingPartition]) -> None:
        super().__init__("; ".join(map(str, missing)))
        self.missing = missing


async def missing_partitions(connection: AsyncConnection[Any]) -> list[MissingPartition]:
    """Return partitions that writes need now or soon, and those with lost sealed entries."""
    return [
        MissingPartition(*row)
        for row in await (await connection.execute(_SQL["missing"])).fetchall()
    ]


async def require_partitions(connection: AsyncConnection[Any]) -> None:
    """Create partitions that are not made yet. Raises MissingPartitionError for lost ones."""
    missing = await missing_partitions(connection)
    if missing and all(each.can_be_made for each in missing):
        await connection.execute(_SQL["ensure"])
        missing = await missing_partitions(connection)
    if missing:
        raise MissingPartitionError(missing)
