"""Housekeeping of the notifier besides sending.

It removes notifications of deleted subscriptions, bounds the backlog of the others, reviews those
that only fail, and notifies the operator.
"""

from dataclasses import dataclass
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.background.periodic import Periodic
from statesvc.database.queries import queries
from statesvc.database.wakeups.wakeup import LOG, OUTBOX, notify
from statesvc.delivery.attempt_entry import append_ends, tried
from statesvc.delivery.retry_schedule import (
    DELAYS_SECONDS,
    JITTER_SHARE_MAX,
    RETRY_AFTER_SECONDS_MAX,
)
from statesvc.health.notices import NoticeKind
from statesvc.log.batch_row import begin_batch, write_batch
from statesvc.maintenance.upkeep import report
from statesvc.notifier.coalesce import Coalescer, overfull
from statesvc.notifier.context import NotifierContext
from statesvc.notifier.operator_incidents import TYPES, notify_operators
from statesvc.notifier.policy import REVIEW_BOUNDS, log_notices, review

_ROWS_AT_ONCE: Final = 5_000

_SQL = queries("statesvc.notifier", "housekeeping")
_BOARD = queries("statesvc.notifier", "limiter_board")


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogBound:
    """Bound of a subscription's waiting notifications before they are coalesced."""

    count_max: int = 10_000
    age_seconds: float = 24 * 3600.0


class NotifierUpkeep(Periodic):
    """Runs at the start and at every sweep until `stop`.

    Safe next to other notifiers that do the same.
    """

    def __init__(
        self, context: NotifierContext, *, worker: str, bound: BacklogBound, every_seconds: float
    ) -> None:
        super().__init__(
            "notifier upkeep",
            self._sweep,
            every_seconds=every_seconds,
            retry_seconds=every_seconds,
            jitter=0.2,
        )
        self._context = context
        self._bound = bound
        self._coalescer = Coalescer()
        self._worker = worker

    async def _sweep(self) -> None:
        async with self._context.pool.connection() as connection:
            await self.once(connection)

    async def once(self, connection: AsyncConnection[Any]) -> None:
        """Run a pass."""
        row = await (
            await connection.execute(_SQL["find"], {**REVIEW_BOUNDS, "types": TYPES})
        ).fetchone()
        has_deleted, has_dead_notifiers, has_failing, has_operators = row or (False,) * 4
        if has_deleted:
            await self._purge(connection)
        if has_dead_notifiers:
            await connection.execute(_BOARD["prune"])
        if repaired := await repair_outbox(connection):
            report(self._context.telemetry, "outbox", repaired)
            await notify(connection, OUTBOX)
        # one cheap query finds out which of these is needed: most passes of most notifiers find
        # none
        notices = await review(connection) if has_failing else []
        log_notices(self._context.telemetry, notices)
        # disabling is an entry of the log, and the sealer waits for it
        if any(notice.kind is NoticeKind.DISABLED for notice in notices):
            await notify(connection, LOG)
        if has_operators and await notify_operators(connection, writer=self._worker):
            await notify(connection, OUTBOX, LOG)
        for backlog in await overfull(
            connection, count_max=self._bound.count_max, age_seconds=self._bound.age_seconds
        ):
            left_out = await self._coalescer.coalesce(connection, backlog)
            if left_out:
                self._context.telemetry.notifications_coalesced.add(left_out)
                # each backlog in a transaction of its own, woken for at once: the next may take
                # long
                await notify(connection, OUTBOX, LOG)

    async def _purge(self, connection: AsyncConnection[Any]) -> None:
        """Remove the notifications of deleted subscriptions.

        The entry of the deletion covers them; tries get an entry nevertheless.
        """
        async with connection.transaction():
            purged = await (
                await connection.execute(_SQL["purge"], {"limit": _ROWS_AT_ONCE}, binary=True)
            ).fetchall()
            # a try that was made is evidence, also of a subscription that is gone
            cancelled = await tried(connection, purged) if purged else []
            if cancelled:
                now = await (await begin_batch(connection)).rows()
                leaf_hashes = await append_ends(
                    connection, self._context.keyring, cancelled, now=now
                )
                await write_batch(
                    connection,
                    batch_id=now.batch_id,
                    recorded_at=now.recorded_at,
                    leaf_hashes=leaf_hashes,
                    writer=self._worker,
                )
        if cancelled:
            await notify(connection, LOG)


async def repair_outbox(connection: AsyncConnection[Any]) -> int:
    """Repair due times of notifications and receivers (`inbox_due_times`); return their number."""
    longest = 1 + JITTER_SHARE_MAX
    parameters = {
        "limit": _ROWS_AT_ONCE,
        "delays": [seconds * longest for seconds in DELAYS_SECONDS],
        "delay_max": RETRY_AFTER_SECONDS_MAX * longest,
        # none that a notifier takes: an attempt may last 15 s
        "lease_max": 600.0,
    }
    row = await (await connection.execute(_SQL["repair_outbox"], parameters)).fetchone()
    return sum(row or ())
