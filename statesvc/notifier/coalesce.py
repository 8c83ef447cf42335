"""Coalescing: in a long backlog, the latest notification of a shipment replaces the earlier ones.

The remaining notification declares it (`data.gap`), and its entry in the log lists the replaced
notifications and their tries (`covers`): none is dropped silently, and all can be replayed. A
notification that is being sent, or was tried before, is never changed: it has the same bytes at
every attempt. Lock order: ARCHITECTURE.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, Final
from uuid import UUID

import structlog
from psycopg import AsyncConnection

from statesvc.database.queries import columns, queries
from statesvc.delivery.notification import Gap

WINDOW_ROWS: Final = 10_000
WINDOWS_MAX: Final = 10
SHIPMENTS_AT_ONCE: Final = 200
_NIL: Final = UUID(int=0)
_GAP_COLUMNS: Final = (
    "shipment_ids",
    "sequences",
    "skipped",
    "from_sequences",
    "to_sequences",
    "covers",
)

_SQL = queries("statesvc.notifier", "coalesce")
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An unleased row of the outbox. `stands`: it already replaces others."""

    shipment_id: UUID
    sequence: int
    attempts: int
    stands: bool


@dataclass(frozen=True, slots=True)
class Collapse:
    """The last of a shipment's notifications, and the earlier ones that it replaces."""

    last: Waiting
    skipped: Sequence[Waiting]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """A subscription for which too much waits.

    Unless `too_many`, only notifications older than `too_old` collapse.
    """

    subscription_id: UUID
    too_many: bool
    too_old: datetime


def collapses(waiting: Sequence[Waiting]) -> list[Collapse]:
    """Return which notification of each shipment can replace which.

    `waiting` is ordered by shipment and sequence.
    """
    found = []
    for _, group in groupby(waiting, key=lambda one: one.shipment_id):
        *before, last = group
        # the last was never sent and replaces none yet: its bytes may still change, once
        if before and not last.attempts and not last.stands:
            found.append(Collapse(last, before))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A replaced notification.

    `gap`: the gap that its own body would have declared; `covers`: the sequences of those that
    end with it.
    """

    shipment_id: UUID
    sequence: int
    gap: Gap | None = None
    covers: Sequence[int] = ()


def gap_of(skipped: Sequence[Skipped]) -> Gap:
    """Return the gap that a notification declares for those that it replaces, directly or not."""
    inner = [one.gap for one in skipped]
    return Gap(
        skipped=len(skipped) + sum(gap.skipped for gap in inner if gap is not None),
        from_sequence=min(
            one.sequence if gap is None else gap.from_sequence
            for one, gap in zip(skipped, inner, strict=True)
        ),
        to_sequence=max(one.sequence for one in skipped),
    )


def covers_of(skipped: Sequence[Skipped]) -> list[int]:
    """Return the sequences of all notifications that the replacement covers."""
    return sorted({sequence for one in skipped for sequence in (one.sequence, *one.covers)})


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
            cursor = await connection.execute(
                _SQL["lock_waiting"], {**of, "shipment_ids": list(shipment_ids)}
            )
            waiting = [
                Waiting(
                    shipment_id=shipment_id, sequence=sequence, attempts=attempts, stands=stands
                )
                for shipment_id, sequence, attempts, stands in await cursor.fetchall()
            ]
            found = collapses(waiting)
            if not found:
                return 0
            skipped = await _read(
                connection, subscription_id, [one for collapse in found for one in collapse.skipped]
            )
            await connection.execute(_SQL["take_out"], {**of, **_keys(skipped)})
            left_out = {
                shipment_id: list(group)
                for shipment_id, group in groupby(skipped, key=lambda one: one.shipment_id)
            }
            rows = [
                _gap_row(collapse.last, left_out[collapse.last.shipment_id]) for collapse in found
            ]
            await connection.execute(_SQL["write_gaps"], {**of, **columns(rows, _GAP_COLUMNS)})
            await connection.execute(
                _SQL["bring_forward"], {**of, **_keys([collapse.last for collapse in found])}
            )
        return len(skipped)


async def _read(
    connection: AsyncConnection[Any], subscription_id: UUID, rows: Sequence[Waiting]
) -> list[Skipped]:
    cursor = await connection.execute(
        _SQL["read_skipped"], {"subscription_id": subscription_id, **_keys(rows)}, binary=True
    )
    return [
        Skipped(
            shipment_id=row.shipment_id,
            sequence=row.sequence,
            gap=None
            if skipped is None
            else Gap(skipped=skipped, from_sequence=from_sequence, to_sequence=to_sequence),
            covers=covers or (),
        )
        for row, (skipped, from_sequence, to_sequence, covers) in zip(
            rows, await cursor.fetchall(), strict=True
        )
    ]


def _gap_row(last: Waiting, skipped: Sequence[Skipped]) -> tuple[UUID, int, int, int, int, str]:
    gap = gap_of(skipped)
    covers = " ".join(map(str, covers_of(skipped)))
    return last.shipment_id, last.sequence, gap.skipped, gap.from_sequence, gap.to_sequence, covers


def _keys(rows: Sequence[Waiting] | Sequence[Skipped]) -> dict[str, list[Any]]:
    return columns([(one.shipment_id, one.sequence) for one in rows], ("shipment_ids", "sequences"))
