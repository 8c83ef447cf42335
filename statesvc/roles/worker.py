"""The role `worker`: turns messages into events, state and notifications, and keeps the tables in order."""

from contextlib import AsyncExitStack

from events.carriers import CARRIERS
from statesvc.bodies.archiver import Archiver
from statesvc.bodies.folder import archive_folder
from statesvc.http.keys import Keys
from statesvc.maintenance.upkeep import Upkeep
from statesvc.roles.foundation import Launch, foundation
from statesvc.roles.lifetime import Farewell, Part, live
from statesvc.roles.limits import worker_limits
from statesvc.roles.serving import serve
from statesvc.telemetry import names
from statesvc.wakeup.channels import INBOX
from statesvc.wakeup.listener import Listener
from statesvc.worker.batch import Workshop
from statesvc.worker.loop import Pace, Worker


async def run(launch: Launch) -> int:
    """Runs until told to stop; returns the exit code."""
    settings = launch.settings
    async with foundation(launch, worker_limits(settings)) as base, AsyncExitStack() as stack:
        base.telemetry.observe_pools({"worker": base.pool})
        listener = Listener(base.dsns.listen, [INBOX])
        await listener.start()
        stack.push_async_callback(listener.stop)
        base.telemetry.observe(names.LISTENER_UP, lambda: [(float(listener.is_up), {})])
        workshop = Workshop(pool=base.pool, keyring=base.keyring, carriers=CARRIERS, telemetry=base.telemetry, worker=launch.worker_id)
        pace = Pace(
            batch_min=settings.worker.batch_min,
            batch_max=settings.worker.batch_max,
            bytes_max=settings.worker.claim_bytes_max,
            lease_seconds=settings.worker.lease_seconds,
            sweep_seconds=settings.worker.sweep_seconds,
            # the rest of the grace is for giving leases back
            grace_seconds=settings.http.grace_seconds * 0.8,
        )
        worker = Worker(workshop, listener=listener, woken=listener.event(INBOX), waker=base.waker, pace=pace)
        upkeep = Upkeep(base.pool)
        server = await serve(launch, base, keys=Keys(base.pool))
        stack.push_async_callback(server.stop)
        parts = [Part(name="worker", run=worker.run, stop=worker.stop), Part(name="upkeep", run=upkeep.run, stop=upkeep.stop)]
        folder = archive_folder(settings)
        if folder is not None:
            archiver = Archiver(base.dsns.listen, folder=folder, keyring=base.keyring, settings=settings.archive, telemetry=base.telemetry)
            parts.append(Part(name="archiver", run=archiver.run, stop=archiver.stop))
        return await live(
            parts,
            helpers=[task for task in (base.waker.task, listener.task) if task is not None],
            signals=base.signals,
            drain=base.readiness.drain,
            farewell=Farewell(grace_seconds=settings.http.grace_seconds),
        )
