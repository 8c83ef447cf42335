"""The watcher: a job of every worker that looks at due shipments.

It sleeps a minute while none is due, and works in small steps while many are: a million shipments that come due at once, because a carrier
stopped, neither starve other work nor flood their subscribers.
"""

from typing import Any, Final

import structlog
from psycopg import AsyncConnection

from statesvc.addons.expectations.never_heard import observe_never_heard
from statesvc.addons.expectations.observe import observe
from statesvc.addons.expectations.rearm import rearm
from statesvc.background.periodic import Periodic
from statesvc.database.pool import Pool
from statesvc.database.queries import queries
from statesvc.database.wakeups.channels import LOG, OUTBOX
from statesvc.database.wakeups.waker import Wakes
from statesvc.roles.runtime import Launch, Runtime
from statesvc.roles.shutdown import Component
from statesvc.telemetry.metrics import Telemetry

EVERY_SECONDS: Final = 60.0
STEP_SECONDS: Final = 1.0
"""Between two steps while more is due: with `observe.AT_ONCE` the rate of each worker."""

_SQL = queries("statesvc.addons.expectations", "watcher")
log = structlog.get_logger()


def watcher(pool: Pool, telemetry: Telemetry, waker: Wakes, *, worker: str) -> Periodic:
    """Make the watcher. `worker` names the process in the log."""

    async def work() -> float | None:
        async with pool.connection() as connection:
            if await (await connection.execute(_SQL["is_due"])).fetchone() != (True,):
                return None
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
    """Observe at once all that is due."""
    while (await observe(connection, worker=worker)).is_full or (
        await observe_never_heard(connection, worker=worker)
    ).is_full:
        pass
