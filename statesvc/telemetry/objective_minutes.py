"""Kept and missed promises, minute by minute for a week: each process writes once a minute.

All processes add to one row a minute and objective. A write with a lost answer may count twice,
which a chart and a budget can bear.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import orjson
import psycopg
from psycopg import AsyncConnection

from statesvc.background.periodic import Periodic
from statesvc.database.pool import Pool
from statesvc.database.queries import queries
from statesvc.telemetry.objectives import MinuteCount, ObjectiveCounts

_EVERY_SECONDS: Final = 60.0
# Shorter at first, because a new service's promises are looked at soon.
_FIRST_SECONDS: Final = 10.0
# Minutes for which counts stay in memory while the database is away.
_MINUTES_MAX: Final = 24 * 60

_SQL: Final = queries("statesvc.telemetry", "objective_minutes")


class ObjectiveMinute(NamedTuple):
    """Counts of all processes in a minute, or in several together."""

    begins: datetime
    objective: str
    counted: MinuteCount


def objective_minutes(pool: Pool, counts: ObjectiveCounts) -> Periodic:
    """Write the counts once a minute, if there are any."""

    async def work() -> None:
        await write(pool, counts)

    return Periodic(
        "objective minutes",
        work,
        every_seconds=_EVERY_SECONDS,
        first_seconds=_FIRST_SECONDS,
        retry_seconds=_EVERY_SECONDS,
        jitter=0.1,
    )


async def write(pool: Pool, counts: ObjectiveCounts) -> None:
    """Add the counts to their rows. Raises psycopg.Error, and keeps them then."""
    # taken first: what is counted while the statement runs belongs to the next minute
    taken = counts.take()
    if not taken:
        return
    rows = [
        {
            "minute": datetime.fromtimestamp(minute * 60, UTC).isoformat(),
            "objective": name,
            "kept": count.kept,
            "missed": count.missed,
            "counts": count.counts,
        }
        # the same order in every process: none waits for another crosswise
        for (minute, name), count in sorted(taken.items(), key=lambda item: item[0])
    ]
    try:
        async with pool.connection() as connection:
            await connection.execute(_SQL["add"], {"rows": orjson.dumps(rows).decode()})
    except (psycopg.Error, TimeoutError):
        counts.put_back(taken, minutes_max=_MINUTES_MAX)
        raise


async def read_minutes(
    connection: AsyncConnection[Any], *, minutes: int, step: int = 1
) -> Sequence[ObjectiveMinute]:
    """Read the last `minutes`, `step` of them together, the oldest first.

    Spans without a count are missing.
    """
    rows = await (
        await connection.execute(_SQL["minutes"], {"minutes": minutes, "step": step})
    ).fetchall()
    return [
        ObjectiveMinute(
            begins, objective, MinuteCount(kept=kept, missed=missed, counts=list(counts))
        )
        for begins, objective, kept, missed, counts in rows
    ]


async def read_shares(connection: AsyncConnection[Any], *, minutes: int) -> dict[str, MinuteCount]:
    """Read kept and missed counts of the last `minutes`, by objective."""
    rows = await (await connection.execute(_SQL["shares"], {"minutes": minutes})).fetchall()
    return {objective: MinuteCount(kept=kept, missed=missed) for objective, kept, missed in rows}
