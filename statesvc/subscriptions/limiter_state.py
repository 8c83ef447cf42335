"""What is known of how fast a subscription may be told."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import class_row

from statesvc.database.queries import queries

_SQL = queries("statesvc.subscriptions", "limiter_state")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterSummary:
    """Of all notifiers together. No `notifiers`: nothing was sent lately, so nothing is known."""

    limit: int
    in_flight: int
    mean_latency_seconds: float | None
    breaker: str
    next_allowed_at: datetime | None
    notifiers: int


async def read_limiter(connection: AsyncConnection[Any], subscription_id: UUID) -> LimiterSummary:
    """As the notifiers last said it."""
    cursor = connection.cursor(row_factory=class_row(LimiterSummary))
    await cursor.execute(_SQL["limiter"], {"subscription_id": subscription_id})
    found = await cursor.fetchone()
    assert found is not None  # noqa: S101 - the clock always has a row
    return found
