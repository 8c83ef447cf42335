"""When too much waits for a subscriber, the latest notification of each shipment stands for those before it.

It says so (`data.gap`), and each that is left out becomes an entry of the log with the outcome `coalesced`: nothing is dropped
silently, and all of it can be replayed. What is under way, or was sent before without success, is never changed: a notification has the
same bytes at every attempt. Lock order: outbox rows by key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, Final
from uuid import UUID

import structlog
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.database.pending import columns
from statesvc.database.queries import queries
from statesvc.delivery.attempt_entry import DeliveryAttempt, record_attempts
from statesvc.delivery.notification import Gap, QueuedNotification, body_of, notification_of
from statesvc.delivery.outcome import Answer, AttemptOutcome
from statesvc.log.batch_row import tick

WINDOW_ROWS: Final = 10_000
WINDOWS_MAX: Final = 10
SHIPMENTS_AT_ONCE: Final = 200
_NIL: Final = UUID(int=0)
_GAP_COLUMNS: Final = ("shipment_ids", "sequences", "skipped", "from_sequences", "to_sequences")

_SQL = queries("statesvc.notifier", "coalesce")
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One row of the outbox that is not leased. `stands`: it stands for others already."""

    shipment_id: UUID
    sequence: int
    attempts: int
    stands: bool


@dataclass(frozen=True, slots=True)
class Collapse:
    """The last of a shipment's notifications, and those before it that it will stand for."""

    last: Waiting
    skipped: Sequence[Waiting]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """A subscription for which too much waits. Not `too_many`: only what is older than `too_old` collapses."""

    subscription_id: UUID
    too_many: bool
    too_old: datetime


def collapses(waiting: Sequence[Waiting]) -> list[Collapse]:
    """Which notification of each shipment can stand for which. `waiting` is ordered by shipment and sequence."""
    found = []
    for _, group in groupby(waiting, key=lambda one: one.shipment_id):
        *before, last = group
        if before and not last.attempts and not last.stands:
            found.append(Collapse(last, before))
    return found


def gap_of(skipped: Sequence[QueuedNotification]) -> Gap:
    """What a notification says of these: of what they stood for themselves, too."""
    inner = [one.notification.gap for one in skipped]
    return Gap(
        skipped=len(skipped) + sum(gap.skipped for gap in inner if gap is not None),
        from_sequence=min(one.sequence if gap is None else gap.from_sequence for one, gap in zip(skipped, inner, strict=True)),
        to_sequence=max(one.sequence for one in skipped),
    )


async def overfull(connection: AsyncConnection[Any], *, count_max: int, age_seconds: float) -> list[Backlog]:
    """Subscriptions beyond their bound that have not opted out."""
    cursor = await connection.execute(_SQL["overfull"], {"count_max": count_max, "age_seconds": age_seconds})
    return [Backlog(subscription_id=row[0], too_many=row[1], too_old=row[2]) for row in await cursor.fetchall()]


class Coalescer:
    """Collapses what waits, a bounded part each time; it goes on where it stopped."""

    def __init__(self, keyring: Keyring, *, worker: str) -> None:
        self._keyring = keyring
        self._worker = worker
        self._after: dict[UUID, UUID] = {}

    async def coalesce(self, connection: AsyncConnection[Any], backlog: Backlog) -> int:
        """Returns how many notifications it left out."""
        left_out = 0
        for _ in range(WINDOWS_MAX):
            after = self._after.get(backlog.subscription_id, _NIL)
            found = await self._window(connection, backlog, after)
            candidates = [shipment_id for shipment_id, is_candidate in found if is_candidate]
            for start in range(0, len(candidates), SHIPMENTS_AT_ONCE):
                left_out += await self._collapse(connection, backlog.subscription_id, candidates[start : start + SHIPMENTS_AT_ONCE])
            if not found:
                self._after.pop(backlog.subscription_id, None)
                break
            self._after[backlog.subscription_id] = found[-1][0]
        if left_out:
            _log.warning("notifications_coalesced", subscription_id=backlog.subscription_id, count=left_out)
        return left_out

    async def _window(self, connection: AsyncConnection[Any], backlog: Backlog, after: UUID) -> list[tuple[UUID, bool]]:
        parameters = {
            "subscription_id": backlog.subscription_id,
            "too_many": backlog.too_many,
            "too_old": backlog.too_old,
            "after": after,
            "window": WINDOW_ROWS,
        }
        return await (await connection.execute(_SQL["collapsible"], parameters, binary=True)).fetchall()

    async def _collapse(self, connection: AsyncConnection[Any], subscription_id: UUID, shipment_ids: Sequence[UUID]) -> int:
        of: dict[str, Any] = {"subscription_id": subscription_id}
        async with connection.transaction():
            cursor = await connection.execute(_SQL["lock_waiting"], {**of, "shipment_ids": list(shipment_ids)})
            waiting = [
                Waiting(shipment_id=shipment_id, sequence=sequence, attempts=attempts, stands=stands)
                for shipment_id, sequence, attempts, stands in await cursor.fetchall()
            ]
            found = collapses(waiting)
            if not found:
                return 0
            skipped = await self._read(connection, subscription_id, [one for collapse in found for one in collapse.skipped])
            ticked = await tick(connection)
            now = ticked.recorded_at
            attempts = [_left_out(one, now) for one in skipped]
            await record_attempts(connection, self._keyring, attempts, now=ticked, worker=self._worker)
            await connection.execute(_SQL["take_out"], {**of, **_keys(skipped)})
            gaps = {shipment_id: gap_of(list(group)) for shipment_id, group in groupby(skipped, key=lambda one: one.shipment_id)}
            rows = [_gap_row(collapse.last, gaps[collapse.last.shipment_id]) for collapse in found]
            await connection.execute(_SQL["write_gaps"], {**of, "now": now, **columns(rows, _GAP_COLUMNS)})
            await connection.execute(_SQL["bring_forward"], {**of, "now": now, **_keys([collapse.last for collapse in found])})
        return len(skipped)

    async def _read(self, connection: AsyncConnection[Any], subscription_id: UUID, rows: Sequence[Waiting]) -> list[QueuedNotification]:
        cursor = await connection.execute(_SQL["read_skipped"], {"subscription_id": subscription_id, **_keys(rows)}, binary=True)
        return [
            QueuedNotification(
                subscription_id=subscription_id,
                shipment_id=row.shipment_id,
                sequence=row.sequence,
                attempts=row.attempts + 1,
                notification=notification_of(row.sequence, queued),
                sealed_key=key,
            )
            for row, (*queued, key) in zip(rows, await cursor.fetchall(), strict=True)
        ]


def _left_out(queued: QueuedNotification, now: datetime) -> DeliveryAttempt:
    answer = Answer(outcome=AttemptOutcome.COALESCED, duration_seconds=0)
    return DeliveryAttempt(queued=queued, answer=answer, started_at=now, body=body_of(queued.notification))


def _gap_row(last: Waiting, gap: Gap) -> tuple[UUID, int, int, int, int]:
    return last.shipment_id, last.sequence, gap.skipped, gap.from_sequence, gap.to_sequence


def _keys(rows: Sequence[Waiting] | Sequence[QueuedNotification]) -> dict[str, list[Any]]:
    return columns([(one.shipment_id, one.sequence) for one in rows], ("shipment_ids", "sequences"))
