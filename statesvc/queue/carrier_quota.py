"""Quotas: a carrier's weight in each claim, and how many of its messages workers may lease at once.

Each change is in the log.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import class_row

from statesvc.database.queries import queries
from statesvc.log.actions import record_action

_SQL = queries("statesvc.queue", "carrier_quota")

WEIGHT_MIN: Final = 0.01
WEIGHT_MAX: Final = 100.0
IN_FLIGHT_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierQuota:
    """Quota of a carrier. `in_flight_max` None: no bound; `changed_at` None: never touched."""

    carrier_id: str
    weight: float = 1.0
    in_flight_max: int | None = None
    changed_at: datetime | None = None
    changed_by: str | None = None
    why: str = ""
    in_flight: int = 0
    """Messages that are leased now."""


async def list_quotas(connection: AsyncConnection[Any]) -> list[CarrierQuota]:
    return await _select(connection, None)


async def quota_of(connection: AsyncConnection[Any], carrier_id: str) -> CarrierQuota:
    """Return the carrier's quota, or the default if it was never changed."""
    found = await _select(connection, carrier_id)
    return found[0] if found else CarrierQuota(carrier_id=carrier_id)


async def set_quota(
    connection: AsyncConnection[Any],
    carrier_id: str,
    *,
    weight: float,
    in_flight_max: int | None,
    why: str,
    actor: str,
) -> None:
    """Set the quota, in effect at the next claim.

    The caller then wakes `statesvc.database.wakeups.wakeup.INBOX`: there may be room for more.
    """
    async with connection.transaction():
        await connection.execute(
            _SQL["set_quota"],
            {
                "carrier_id": carrier_id,
                "weight": weight,
                "in_flight_max": in_flight_max,
                "changed_by": actor,
                "why": why,
            },
        )
        details: dict[str, Any] = {"why": why, "weight": f"{weight:g}"}
        if in_flight_max is not None:
            details["in_flight_max"] = in_flight_max
        await record_action(
            connection,
            actor=actor,
            verb="set_quota",
            target=f"carrier {carrier_id}",
            details=details,
        )


async def _select(connection: AsyncConnection[Any], carrier_id: str | None) -> list[CarrierQuota]:
    cursor = connection.cursor(row_factory=class_row(CarrierQuota))
    await cursor.execute(_SQL["quotas"], {"carrier_id": carrier_id})
    return await cursor.fetchall()
