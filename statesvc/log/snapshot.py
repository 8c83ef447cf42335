"""A snapshot of the log for a whole transaction."""

from typing import Any, Final

from psycopg import AsyncConnection

_SNAPSHOT: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
# An archived month leaves the tables by DDL, of which an older snapshot would see only a part. None
# leaves while this lock is held.
_PARTITIONS: Final = "LOCK TABLE statesvc.event IN ACCESS SHARE MODE"


async def take_snapshot(connection: AsyncConnection[Any]) -> None:
    """Run the first statements of the caller's transaction."""
    await connection.execute(_SNAPSHOT)
    await connection.execute(_PARTITIONS)
