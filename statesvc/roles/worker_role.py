"""The role `worker`: turns messages into events, state and notifications, and keeps the tables in
order.
"""

from dataclasses import replace
from functools import partial

from events.carriers import CARRIERS
from events.parsing.whereabouts import load_tables
from statesvc.background.busy_priority import BusyPriority
from statesvc.database.wakeups.waker import Waker
from statesvc.database.wakeups.wakeup import INBOX, INBOX_NOW, READY_NOW, TRIALS
from statesvc.files.archive_folder import archive_folder
from statesvc.health.reconciler import reconciler
from statesvc.log.history import History
from statesvc.maintenance.upkeep import inbox_due_times, maintenance
from statesvc.roles.connection_limits import worker_limits
from statesvc.roles.http_server import run_with_health
from statesvc.roles.runtime import Launch, open_runtime
from statesvc.roles.shutdown import Component
from statesvc.seams import named_parts
from statesvc.subscriptions.key_revocation import key_expiry
from statesvc.worker.batch_context import BatchContext
from statesvc.worker.trial_evidence import TrialComparer
from statesvc.worker.worker_loop import Worker, WorkerLimits


async def run(launch: Launch) -> int:
    """Run until it is asked to stop; return the exit code."""
    settings = launch.settings
    limits = worker_limits(settings)
    # a worker reads places all the time, and its first message should not wait for them
    load_tables()
    async with open_runtime(launch, limits, channels=READY_NOW) as base:
        base.telemetry.observe_pools({"worker": base.pool})
        context = BatchContext(
            pool=base.pool,
            keyring=base.keyring,
            carriers=settings.in_account_zones(CARRIERS),
            telemetry=base.telemetry,
            worker=launch.worker_id,
            archive=History(archive_folder(settings)),
        )
        comparer = TrialComparer(context)
        context = replace(context, on_trials=partial(_trials_written, comparer, base.waker))
        claiming = WorkerLimits(
            batch_min=settings.worker.batch_min,
            batch_max=settings.worker.batch_max,
            bytes_max=settings.worker.claim_bytes_max,
            lease_seconds=settings.worker.lease_seconds,
            sweep_seconds=settings.worker.sweep_seconds,
            window_seconds=settings.worker.window_seconds,
            # the rest of the grace is for giving leases back
            grace_seconds=settings.http.grace_seconds * 0.8,
        )
        worker = Worker(
            context,
            listener=base.listener,
            woken=base.listener.event(INBOX),
            ready_now=base.listener.event(INBOX_NOW),
            waker=base.waker,
            limits=claiming,
            priority=BusyPriority(launch.busy_niceness),
        )
        upkeep = maintenance(base.pool)
        expiring = key_expiry(base.pool)
        reconciling = reconciler(base.pool)
        due_times = inbox_due_times(base.pool, base.telemetry, base.waker)
        parts = [
            Component(name="worker", run=worker.run, stop=worker.stop),
            Component(name="trial comparer", run=comparer.run, stop=comparer.stop),
            Component(name=upkeep.name, run=upkeep.run, stop=upkeep.stop),
            Component(name=expiring.name, run=expiring.run, stop=expiring.stop),
            Component(name=reconciling.name, run=reconciling.run, stop=reconciling.stop),
            Component(name=due_times.name, run=due_times.run, stop=due_times.stop),
        ]
        for role, jobs in named_parts("jobs"):
            if role == "worker":
                parts += jobs(launch, base)
        return await run_with_health(launch, base, parts)


def _trials_written(comparer: TrialComparer, waker: Waker) -> None:
    comparer.written()
    waker.wake(TRIALS)
