"""Back-dated entries: their batch has an earlier time than batches sealed before it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.log.batch_row import LONGEST_TRANSACTION

_SQL = queries("statesvc.addons.evidence", "back_dated")
# The field of a bundle's entry that names a later time before it in the log.
BACK_DATED: Final = "recorded_after"


async def read_back_dated(
    connection: AsyncConnection[Any], indexes: Sequence[int]
) -> dict[int, str]:
    """Return the back-dated entries at these positions, each with the latest time before it."""
    parameters = {"indexes": list(indexes), "longest": LONGEST_TRANSACTION}
    rows = await (await connection.execute(_SQL["back_dated"], parameters)).fetchall()
    return {
        index: latest.astimezone(UTC).isoformat()
        for first_index, entries, latest in rows
        for index in indexes
        if first_index <= index < first_index + entries
    }


def back_dated_entries(
    entries: Sequence[Mapping[str, Any]], documents: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[int, str]]:
    """Yield the back-dated entries, each with the later time before it.

    Stated ones, and those that the bundle's other entries show.
    """
    latest: datetime | None = None
    for place, (entry, document) in enumerate(zip(entries, documents, strict=True)):
        recorded_at = datetime.fromisoformat(document["recorded_at"])
        if BACK_DATED in entry:
            yield place, entry[BACK_DATED]
        # two transactions that overlap may be sealed in either order
        elif latest is not None and recorded_at < latest - LONGEST_TRANSACTION:
            yield place, latest.isoformat()
        latest = recorded_at if latest is None else max(latest, recorded_at)


def is_plausible(entry: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Return whether a stated back-dated entry has an earlier time than the entries before it."""
    return (
        datetime.fromisoformat(document["recorded_at"])
        < datetime.fromisoformat(entry[BACK_DATED]) - LONGEST_TRANSACTION
    )
