"""What we knew at an instant: the entries that were sealed by then. These keep their places, so the answer never changes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.log.checkpoints import latest_head

_SQL = queries("statesvc.shipments", "horizon")


@dataclass(frozen=True, slots=True)
class Horizon:
    """The first `size` entries of the log. `clamped`: a later instant was asked for, and `at` is the last one whose answer is final."""

    size: int
    at: datetime
    clamped: bool

    @property
    def document(self) -> dict[str, Any]:
        """How an answer names it. The index is that of the last entry; None: nothing was sealed by then."""
        return {"as_of": self.at, "as_of_log_index": self.size - 1 if self.size else None, "as_of_clamped": self.clamped}

    def holds(self, log_index: int | None) -> bool:
        """Whether the entry was sealed by then."""
        return log_index is not None and log_index < self.size


async def horizon_at(connection: AsyncConnection[Any], instant: datetime) -> Horizon:
    """What was sealed at `instant`. Past the newest head there may be entries still to be sealed, so it is clamped to that."""
    newest = await latest_head(connection)
    if newest is None:
        return Horizon(0, instant, clamped=False)
    if instant > newest.created_at:
        return Horizon(newest.tree_size, newest.created_at, clamped=True)
    row = await (await connection.execute(_SQL["size_at"], {"instant": instant})).fetchone()
    return Horizon(row[0] if row else 0, instant, clamped=False)
