"""Health of a receiver: what waits for it and why, how much of the last hour it took, how fast it answered, when it is tried next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from statesvc.background.duration import duration
from statesvc.database.queries import queries
from statesvc.delivery.outcome_words import outcome_words
from statesvc.subscriptions.recorded_attempts import RecentTries

_SQL: Final = queries("statesvc.addons.console", "receiver_health")
WAITING_MAX: Final = 10_000
_LISTED_MAX: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverHealth:
    """`success_share`, `p50` and `p95` (of what was taken, in milliseconds): of the last hour; None without any try."""

    waiting: int
    oldest_seconds: float | None
    next_at: datetime | None
    again: int
    tries: int
    delivered: int
    success_share: float | None
    p50: int | None
    p95: int | None


async def read_health(
    connection: AsyncConnection[Any], subscription_id: UUID, recent: RecentTries
) -> ReceiverHealth:
    """Count what waits; what was tried is given."""
    asked = {"subscription_id": subscription_id, "count_max": WAITING_MAX}
    ((waiting, oldest, next_at, again),) = await (
        await connection.execute(_SQL["waiting"], asked)
    ).fetchall()
    taken = sorted(one.duration_ms for one in recent.tries if one.is_delivered)
    return ReceiverHealth(
        waiting=waiting,
        oldest_seconds=oldest,
        next_at=next_at,
        again=again,
        tries=len(recent.tries),
        delivered=len(taken),
        success_share=len(taken) / len(recent.tries) if recent.tries else None,
        p50=_quantile(taken, 0.5),
        p95=_quantile(taken, 0.95),
    )


async def read_waiting(
    connection: AsyncConnection[Any], subscription_id: UUID
) -> Sequence[Mapping[str, Any]]:
    """List the first of what waits."""
    cursor = await connection.execute(
        _SQL["waiting_list"], {"subscription_id": subscription_id, "limit": _LISTED_MAX}
    )
    names = [column.name for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in await cursor.fetchall()]


def finding_sentence(one: Mapping[str, Any], health: ReceiverHealth, now: datetime) -> str | None:
    """Say what is wrong with it and what happens by itself; None: nothing is."""
    if one["state"] == "disabled":
        why = one["disabled_why"] or "no reason given"
        return f"It is disabled ({why}). Nothing is sent until it is resumed; what was missed can be sent again from then."
    if one["state"] == "paused":
        return f"It is paused. {health.waiting:,} notifications wait, and are sent in order once it is resumed."
    failing = one["failing"]
    if failing is None:
        return None
    since = duration((now - datetime.fromisoformat(failing["since"])).total_seconds())
    last = outcome_words(failing["last_outcome"], failing["last_status_code"])
    return (
        f"It has taken nothing for {since}: {failing['failures']:,} tries failed, the last: {last}. "
        "It is tried again from time to time; once it answers, what waits is sent by itself, in order."
    )


def _quantile(ordered: Sequence[int], share: float) -> int | None:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else None
