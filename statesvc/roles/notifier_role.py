"""The role `notifier`: sends notifications to subscribers.

In `statesvc up` its process is the sealer too: both mostly wait, and share memory.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from statesvc.background.busy_priority import BusyPriority
from statesvc.database.wakeups.wakeup import LOG, OUTBOX
from statesvc.delivery.targets import Targets
from statesvc.files.archive_folder import archive_folder
from statesvc.log.history import History
from statesvc.notifier.context import NotifierContext
from statesvc.notifier.housekeeping import BacklogBound
from statesvc.notifier.notifier_loop import SETTLE_WITHIN_SECONDS, Notifier, NotifierLimits
from statesvc.roles.connection_limits import worker_limits
from statesvc.roles.http_server import run_with_health
from statesvc.roles.runtime import Launch, Runtime, open_runtime
from statesvc.roles.sealer_role import sealer_components
from statesvc.roles.shutdown import Component
from statesvc.telemetry import gauges


async def run(launch: Launch) -> int:
    """Run until it is asked to stop; return the exit code."""
    is_sealer = "sealer" in launch.ports
    channels = [OUTBOX, LOG] if is_sealer else [OUTBOX]
    async with (
        open_runtime(launch, worker_limits(launch.settings), channels=channels) as base,
        notifier_component(launch, base) as part,
    ):
        sealer = sealer_components(launch, base) if is_sealer else []
        return await run_with_health(launch, base, [part, *sealer])


@asynccontextmanager
async def notifier_component(launch: Launch, base: Runtime) -> AsyncIterator[Component]:
    settings = launch.settings
    base.telemetry.observe_pools({"notifier": base.pool})
    async with AsyncExitStack() as stack:
        targets = await stack.enter_async_context(
            Targets(
                allowed=settings.notifier.subscriber_allow,
                source=settings.notifier.event_source,
                proxy=settings.notifier.proxy,
            )
        )
        base.telemetry.observe(
            gauges.BROKER_CONNECTIONS, lambda: [(float(targets.broker_connections), {})]
        )
        notifier = Notifier(
            NotifierContext(
                pool=base.pool,
                keyring=base.keyring,
                listener=base.listener,
                telemetry=base.telemetry,
                targets=targets,
                archive=History(archive_folder(settings)),
                waker=base.waker,
            ),
            worker=launch.worker_id,
            priority=BusyPriority(launch.busy_niceness),
            limits=NotifierLimits(
                in_flight_max=settings.notifier.in_flight_max,
                lease_seconds=settings.notifier.lease_seconds,
                sweep_seconds=settings.notifier.sweep_seconds,
                # a worker writes notifications once a window, and the claim of the
                # next ones settles these
                settle_within_seconds=SETTLE_WITHIN_SECONDS + settings.worker.window_seconds,
                grace_seconds=settings.http.grace_seconds,
                backlog=BacklogBound(
                    count_max=settings.notifier.backlog_count_max,
                    age_seconds=settings.notifier.backlog_age_seconds,
                ),
            ),
        )
        yield Component(name="notifier", run=notifier.run, stop=notifier.stop)
