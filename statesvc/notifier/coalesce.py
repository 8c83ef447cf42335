"""Coalescing: in a long backlog, the latest notification of a shipment replaces the earlier ones.

The remaining notification declares it (`data.gap`), and its entry in the log lists the replaced
notifications and their tries (`covers`): none is dropped silently, and all can be replayed. A
notification that is being sent, or was tried before, is never changed: it has the same bytes at
every attempt. Lock order: ARCHITECTURE.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import structlog
from psycopg import AsyncConnection

from statesvc.database.queries import columns, queries

WINDOW_ROWS: Final = 10_000
WINDOWS_MAX: Final = 10
SHIPMENTS_AT_ONCE: Final = 200
_NIL: Final = UUID(int=0)
_KEY_COLUMNS: Final = ("shipment_ids", "sequences")

_SQL = queries("statesvc.notifier", "coalesce")
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """A subscription for which too much waits.

    Unless `too_many`, only notifications older than `too_old` collapse.
    """

    subscription_id: UUID
    too_many: bool
    too_old: datetime


async def overfull(
    connection: AsyncConnection[Any], *, count_max: int, age_seconds: float
) -> list[Backlog]:
    """Return subscriptions beyond their bound that have not opted out."""
    cursor = await connection.execute(
        _SQL["overfull"], {"count_max": count_max, "age_seconds": age_seconds}
    )
    return [
        Backlog(subscription_id=row[0], too_many=row[1], too_old=row[2])
        for row in await cursor.fetchall()
    ]


class Coalescer:
    """Collapses waiting notifications, a bounded part each time, and continues where it stopped."""

    def __init__(self) -> None:
        self._after: dict[UUID, UUID] = {}

    async def coalesce(self, connection: AsyncConnection[Any], backlog: Backlog) -> int:
        """Coalesce a backlog; return how many notifications were left out."""
        left_out = 0
        for _ in range(WINDOWS_MAX):
            after = self._after.get(backlog.subscription_id, _NIL)
            found = await self._window(connection, backlog, after)
            candidates = [shipment_id for shipment_id, is_candidate in found if is_candidate]
            for start in range(0, len(candidates), SHIPMENTS_AT_ONCE):
                left_out += await self._collapse(
                    connection,
                    backlog.subscription_id,
                    candidates[start : start + SHIPMENTS_AT_ONCE],
                )
            if not found:
                self._after.pop(backlog.subscription_id, None)
                break
            self._after[backlog.subscription_id] = found[-1][0]
        if left_out:
            _log.warning(
                "notifications_coalesced", subscription_id=backlog.subscription_id, count=left_out
            )
        return left_out

    async def _window(
        self, connection: AsyncConnection[Any], backlog: Backlog, after: UUID
    ) -> list[tuple[UUID, bool]]:
        parameters = {
            "subscription_id": backlog.subscription_id,
            "too_many": backlog.too_many,
            "too_old": backlog.too_old,
            "after": after,
            "window": WINDOW_ROWS,
        }
        return await (
            await connection.execute(_SQL["collapsible"], parameters, binary=True)
        ).fetchall()

    async def _collapse(
        self, connection: AsyncConnection[Any], subscription_id: UUID, shipment_ids: Sequence[UUID]
    ) -> int:
        of: dict[str, Any] = {"subscription_id": subscription_id}
        async with connection.transaction():
            locked = await connection.execute(
                _SQL["lock_waiting"], {**of, "shipment_ids": list(shipment_ids)}
            )
            # a statement of its own: what another has left out before the lock was ours is seen
            collapsed = await connection.execute(
                _SQL["collapse"], {**of, **columns(await locked.fetchall(), _KEY_COLUMNS)}
            )
            ((left_out,),) = await collapsed.fetchall()
        return int(left_out)
