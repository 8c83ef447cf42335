"""The watcher: a job of every worker that checks due shipments.

It sleeps a minute while none is due, and works in small steps while many are: a million shipments
that come due at once, because a carrier stopped, neither starve other work nor flood their
subscribers.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import structlog
from psycopg import AsyncConnection

from projections.expectations import next_deadline
from projections.state import ShipmentState
from statesvc.addons.expectations.never_heard import observe_never_heard
from statesvc.addons.expectations.observe import observe
from statesvc.background.periodic import Periodic
from statesvc.database.pool import Pool
from statesvc.database.queries import Columns, encoded, ints, queries, timestamps, uuids
from statesvc.database.wakeups.wakeup import LOG, OUTBOX, Wakes
from statesvc.log.batch_row import LONGEST_TRANSACTION
from statesvc.log.json_compression import decompress_json
from statesvc.roles.runtime import Launch, Runtime
from statesvc.roles.shutdown import Component
from statesvc.shipments.expectation_rules import ALL_CARRIERS, RuleBook, RuleScope, read_rules
from statesvc.telemetry.metrics import Telemetry

EVERY_SECONDS: Final = 60.0
STEP_SECONDS: Final = 1.0
"""Between two steps while more is due: with `observe.AT_ONCE` the rate of each worker."""
PAGE_ROWS: Final = 1_000
_DUE: Final[Columns] = {"shipment_ids": uuids, "versions": ints, "due_ats": timestamps}
Connection = AsyncConnection[Any]
_SQL = queries("statesvc.addons.expectations", "watcher")
log = structlog.get_logger()


class Unfinished(NamedTuple):
    carrier_id: str
    shipment_id: UUID
    version: int
    recorded_at: datetime
    due_at: datetime | None
    state: bytes


def watcher(pool: Pool, telemetry: Telemetry, waker: Wakes, *, worker: str) -> Periodic:
    """Make the watcher. `worker` names the process in the log."""

    async def work() -> float | None:
        async with pool.connection() as connection:
            # without a transaction or lock: most of the time nothing is due
            if await (await connection.execute(_SQL["is_due"])).fetchone() != (True,):
                return None
            # before the due ones are looked at, so that they are judged by the present rules
            is_rearming = await rearm(connection)
            reports = [
                await observe(connection, worker=worker),
                await observe_never_heard(connection, worker=worker),
            ]
        observations = [one for report in reports for one in report.observations]
        for one in observations:
            telemetry.observations.add(
                1, {"carrier": one.shipment.carrier_id, "type": one.deadline.kind.value}
            )
        if observations:
            log.info("observed", count=len(observations))
            waker.wake(LOG)
        if any(report.notifications for report in reports):
            waker.wake(OUTBOX)
        if put_off := sum(report.put_off for report in reports):
            log.warning(
                "observations_put_off",
                count=put_off,
                why="their carriers are held, behind or silent, or the log was forked",
            )
        return STEP_SECONDS if is_rearming or any(report.is_full for report in reports) else None

    return Periodic(
        "watcher", work, every_seconds=EVERY_SECONDS, retry_seconds=EVERY_SECONDS, jitter=0.1
    )


def watch_jobs(launch: Launch, base: Runtime) -> list[Component]:
    """Return the watcher as a part of the role worker."""
    watching = watcher(base.pool, base.telemetry, base.waker, worker=launch.worker_id)
    return [Component(name=watching.name, run=watching.run, stop=watching.stop)]


async def catch_up(connection: AsyncConnection[Any], *, worker: str) -> None:
    while (await observe(connection, worker=worker)).is_full or (
        await observe_never_heard(connection, worker=worker)
    ).is_full:
        pass


async def rearm(connection: Connection) -> bool:
    """Apply a page of the oldest rule change that is not applied to all unfinished shipments.

    Return whether there may be more.
    """
    async with connection.transaction():
        alone = await (await connection.execute(_SQL["try_alone"])).fetchone()
        if alone != (True,):
            return False
        # an append that began under the old rules may still commit with its old due time
        settle_seconds = LONGEST_TRANSACTION.total_seconds()
        row = await (
            await connection.execute(_SQL["unapplied"], {"settle_seconds": settle_seconds})
        ).fetchone()
        if row is None:
            return False
        carrier_id, service, *after = row
        page = await unfinished(connection, *after, limit=PAGE_ROWS)
        if moved := list(
            _moved(page, RuleScope(carrier_id, service), await read_rules(connection))
        ):
            await connection.execute(_SQL["set_due"], encoded(moved, _DUE))
        # a short page is the last: the change is applied
        last = page[-1] if len(page) == PAGE_ROWS else None
        applied = {
            "recorded_at": last and last.recorded_at,
            "shipment_id": last and last.shipment_id,
        }
        await connection.execute(
            _SQL["applied_to"], {"carrier_id": carrier_id, "service": service, **applied}
        )
        return True


async def unfinished(
    connection: Connection, after_recorded_at: datetime, after_shipment_id: UUID, *, limit: int
) -> list[Unfinished]:
    """Return the next of all, in the order of their last change."""
    asked = {
        "after_recorded_at": after_recorded_at,
        "after_shipment_id": after_shipment_id,
        "limit": limit,
    }
    cursor = await connection.execute(_SQL["unfinished"], asked, binary=True)
    return [Unfinished(*row) for row in await cursor.fetchall()]


def _moved(
    page: Sequence[Unfinished], scope: RuleScope, rules: RuleBook
) -> Iterator[tuple[UUID, int, datetime | None]]:
    """Yield those within the scope that are due at another time by the rules."""
    for one in page:
        if scope.carrier_id in (ALL_CARRIERS, one.carrier_id):
            state = ShipmentState.from_json(decompress_json(one.state))
            if not scope.covers(one.carrier_id, state.service):
                continue
            deadline = next_deadline(
                state, rules.of(one.carrier_id, state.service), recorded_at=one.recorded_at
            )
            due_at = deadline.due_at if deadline else None
            if due_at != one.due_at:
                yield one.shipment_id, one.version, due_at
