"""The role `sealer`: seals and signs the log. Of several one leads, the others stand by."""

from contextlib import AsyncExitStack

from statesvc.http.keys import Keys
from statesvc.roles.foundation import Launch, foundation
from statesvc.roles.lifetime import Farewell, Part, live
from statesvc.roles.limits import sealer_limits
from statesvc.roles.serving import serve
from statesvc.sealer.lead import Publication
from statesvc.sealer.loop import Pace, Sealer
from statesvc.telemetry import names
from statesvc.wakeup.channels import LOG
from statesvc.wakeup.listener import Listener


async def run(launch: Launch) -> int:
    """Runs until told to stop; returns the exit code."""
    settings = launch.settings
    async with foundation(launch, sealer_limits(settings)) as base, AsyncExitStack() as stack:
        base.telemetry.observe_pools({"sealer": base.pool})
        listener = Listener(base.dsns.listen, [LOG])
        await listener.start()
        stack.push_async_callback(listener.stop)
        sealer = Sealer(
            base.dsns.listen,
            base.keyring.master,
            Publication(file=settings.checkpoint_file, origin=settings.sealer.origin),
            listener=listener,
            waker=base.waker,
            telemetry=base.telemetry,
            pace=Pace(interval_seconds=settings.sealer.interval_seconds, sweep_seconds=settings.sealer.sweep_seconds),
        )
        base.readiness.watch(lambda: sealer.refusal)
        base.telemetry.observe(names.LISTENER_UP, lambda: [(float(listener.is_up), {})])
        base.telemetry.observe(names.SEALER_LEADS, lambda: [(float(sealer.leads), {})])
        base.telemetry.observe(names.SEALER_REFUSES, lambda: [(float(sealer.refusal is not None), {})])
        server = await serve(launch, base, keys=Keys(base.pool))
        stack.push_async_callback(server.stop)
        return await live(
            [Part(name="sealer", run=sealer.run, stop=sealer.stop)],
            helpers=[task for task in (base.waker.task, listener.task) if task is not None],
            signals=base.signals,
            drain=base.readiness.drain,
            farewell=Farewell(grace_seconds=settings.http.grace_seconds),
        )
