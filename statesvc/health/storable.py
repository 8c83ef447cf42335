"""Reasons why this database cannot store or seal now, for `/readyz` and `GET /v1/status`."""

import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.background.duration import duration
from statesvc.database.copy_faults import sequence_fault
from statesvc.database.queries import queries
from statesvc.health.finding import Finding, Urgency
from statesvc.health.running_processes import why_not_writable

_SQL: Final = queries("statesvc.health", "storable")


async def storage_findings(
    connection: AsyncConnection[Any],
    *,
    migrations: Collection[int],
    wall_clock: Callable[[], float] = time.time,
) -> list[Finding]:
    """Return the first reason, or none. `migrations`: the versions that the database must have."""
    read_only = await why_not_writable(connection)
    if read_only is not None:
        return [
            _now(
                "pushes",
                f"the database takes no writes ({read_only.why}): no push is acknowledged, and"
                f" nothing is processed; {read_only.remedy}",
                "AckAvailability",
            )
        ]
    applied = {
        version for (version,) in await (await connection.execute(_SQL["applied"])).fetchall()
    }
    blocked: str | None
    if pending := sorted(frozenset(migrations) - applied):
        blocked = (
            f"migrations are pending ({', '.join(f'{version:04}' for version in pending)}): run"
            " `statesvc migrate`"
        )
    else:
        blocked = await read_lock_fault(connection)
    if blocked is not None:
        return [_now("database", blocked, "AckAvailability")]
    row = await (await connection.execute(_SQL["fit_to_write"])).fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM has one row
    refusal, seconds, missing, clock, next_batch_id, sealed_batch_id = row
    if missing:
        return [
            _now("partitions", _without_partition(missing, clock, wall_clock()), "PartitionHorizon")
        ]
    if sealed_batch_id is not None and next_batch_id <= sealed_batch_id:
        behind = sequence_fault(
            "statesvc.batch_id_seq", "statesvc.batch.batch_id", next_batch_id, sealed_batch_id
        )
        return [_now("database", f"nothing can be processed: {behind}", "CopiedDatabase")]
    if refusal is not None:
        return [
            _now(
                "sealer",
                f"for {duration(seconds)} nothing is sealed and nobody is notified: {refusal}",
                "SealerRefuses",
            )
        ]
    return []


async def read_lock_fault(connection: AsyncConnection[Any]) -> str | None:
    """Return the session that keeps all others from storing messages; None: there is none."""
    row = await (await connection.execute(_SQL["locker"])).fetchone()
    if row is None:
        return None
    table, pid, role, statement, seconds = row
    return (
        f"no push is acknowledged: {table} is locked by pid {pid} ({role or 'unknown role'},"
        f" {statement}, for {duration(seconds)}); SELECT pg_terminate_backend({pid}) ends it"
    )


def _without_partition(missing: Sequence[str], clock: datetime, wall_clock: float) -> str:
    off = _clock_fault(clock, wall_clock)
    if off is not None:
        return f"{off}: there is no partition for that time, so nothing can be stored"
    return (
        f"nothing can be stored: no partition of today in {', '.join(missing)}; `SELECT"
        " statesvc.ensure_partitions()` makes them"
    )


def _now(about: str, text: str, page: str) -> Finding:
    return Finding(urgency=Urgency.NOW, about=about, text=text, page=page)


# Beyond this no round trip, no lost second and no slow synchronisation explains the difference.
_FAR_SECONDS: Final = 3600.0
_UNITS: Final = (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0))


def _clock_fault(database: datetime, machine: float) -> str | None:
    """Return how far the clocks differ; None: they agree. `machine`: seconds since 1970."""
    ahead = database.timestamp() - machine
    if abs(ahead) <= _FAR_SECONDS:
        return None
    unit, seconds = next(
        ((unit, seconds) for unit, seconds in _UNITS if abs(ahead) >= 2 * seconds), ("seconds", 1.0)
    )
    side = "ahead of" if ahead > 0 else "behind"
    return (
        f"the database's clock says {database.astimezone(UTC):%Y-%m-%d %H:%M} UTC,"
        f" {abs(ahead) / seconds:,.0f} {unit} {side} this machine's: find out which one is wrong"
        " and set it right"
    )
