"""The role `worker`: turns messages into events, state and notifications, and keeps the tables in order."""

from dataclasses import replace
from functools import partial

from events.carriers import CARRIERS
from events.parsing.whereabouts import load_tables
from statesvc.addons.archive.body_archiver import BodyArchiver
from statesvc.addons.archive.log_archiver import LogArchiver
from statesvc.addons.expectations.watcher import watcher
from statesvc.background.busy_priority import BusyPriority
from statesvc.database.wakeups.channels import INBOX, TRIALS
from statesvc.database.wakeups.waker import Waker
from statesvc.files.archive_folder import archive_folder
from statesvc.health.reconciler import reconciler
from statesvc.log.history import History
from statesvc.maintenance.due_times import inbox_due_times
from statesvc.maintenance.upkeep import maintenance
from statesvc.roles.connection_limits import worker_limits
from statesvc.roles.http_server import run_with_health
from statesvc.roles.runtime import Launch, open_runtime
from statesvc.roles.shutdown import Component
from statesvc.subscriptions.key_revocation import key_expiry
from statesvc.worker.batch_context import BatchContext
from statesvc.worker.trial_comparer import TrialComparer
from statesvc.worker.worker_loop import Worker, WorkerLimits


async def run(launch: Launch) -> int:
    """Run until it is asked to stop; return the exit code."""
    settings = launch.settings
    limits = worker_limits(settings)
    # a worker reads places all the time, and its first message should not wait for them
    load_tables()
    async with open_runtime(launch, limits, channels=[INBOX]) as base:
        base.telemetry.observe_pools({"worker": base.pool})
        folder = archive_folder(settings)
        context = BatchContext(
            pool=base.pool,
            keyring=base.keyring,
            carriers=settings.in_account_zones(CARRIERS),
            telemetry=base.telemetry,
            worker=launch.worker_id,
            archive=History(folder),
        )
        comparer = TrialComparer(context)
        context = replace(context, on_trials=partial(_trials_written, comparer, base.waker))
        claiming = WorkerLimits(
            batch_min=settings.worker.batch_min,
            batch_max=settings.worker.batch_max,
            bytes_max=settings.worker.claim_bytes_max,
            lease_seconds=settings.worker.lease_seconds,
            sweep_seconds=settings.worker.sweep_seconds,
            # the rest of the grace is for giving leases back
            grace_seconds=settings.http.grace_seconds * 0.8,
        )
        worker = Worker(
            context,
            listener=base.listener,
            woken=base.listener.event(INBOX),
            waker=base.waker,
            limits=claiming,
            priority=BusyPriority(launch.busy_niceness),
        )
        upkeep = maintenance(base.pool)
        expiring = key_expiry(base.pool)
        reconciling = reconciler(base.pool)
        due_times = inbox_due_times(base.pool, base.telemetry, base.waker)
        watching = watcher(base.pool, base.telemetry, base.waker, worker=launch.worker_id)
        parts = [
            Component(name="worker", run=worker.run, stop=worker.stop),
            Component(name="trial comparer", run=comparer.run, stop=comparer.stop),
            Component(name=upkeep.name, run=upkeep.run, stop=upkeep.stop),
            Component(name=expiring.name, run=expiring.run, stop=expiring.stop),
            Component(name=reconciling.name, run=reconciling.run, stop=reconciling.stop),
            Component(name=due_times.name, run=due_times.run, stop=due_times.stop),
            Component(name=watching.name, run=watching.run, stop=watching.stop),
        ]
        if folder is not None:
            archiver = BodyArchiver(
                base.dsns.listen,
                folder=folder,
                keyring=base.keyring,
                settings=settings.archive,
                telemetry=base.telemetry,
            )
            parts.append(Component(name="archiver", run=archiver.run, stop=archiver.stop))
            if settings.archive.log_hot_months is not None:
                months = LogArchiver(
                    base.dsns.listen,
                    hot_months=settings.archive.log_hot_months,
                    telemetry=base.telemetry,
                )
                parts.append(Component(name="log archiver", run=months.run, stop=months.stop))
        return await run_with_health(launch, base, parts)


def _trials_written(comparer: TrialComparer, waker: Waker) -> None:
    comparer.written()
    waker.wake(TRIALS)
