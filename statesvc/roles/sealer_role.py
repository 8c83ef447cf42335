"""The role `sealer`: seals and signs the log. One leads, the others stand by."""

from statesvc.database.wakeups.wakeup import LOG
from statesvc.roles.connection_limits import lead_limits, worker_limits
from statesvc.roles.http_server import run_with_health
from statesvc.roles.runtime import Launch, Runtime, open_runtime
from statesvc.roles.shutdown import Component
from statesvc.roles.usable_settings import checkpoint_store, stamp_trust
from statesvc.sealer.clock_check import ClockCheck
from statesvc.sealer.leadership import Publication
from statesvc.sealer.publisher import Publisher
from statesvc.sealer.sealer_loop import Sealer, SealerPace
from statesvc.sealer.timestamper import Authority, Stamper
from statesvc.seams import named_parts
from statesvc.settings.service_settings import CheckpointSettings
from statesvc.telemetry import gauges


async def run(launch: Launch) -> int:
    """Run until it is asked to stop; return the exit code."""
    async with open_runtime(launch, worker_limits(launch.settings), channels=[LOG]) as base:
        base.telemetry.observe_pools({"sealer": base.pool})
        return await run_with_health(launch, base, sealer_components(launch, base))


def sealer_components(launch: Launch, base: Runtime) -> list[Component]:
    """Return the sealer, and who vouches for its heads."""
    settings = launch.settings
    store = checkpoint_store(settings.checkpoint)
    sealer = Sealer(
        base.dsns.listen,
        base.keyring.master,
        Publication(
            file=settings.checkpoint_file,
            keys_file=settings.log_keys_file,
            origin=settings.sealer.origin,
            store=store,
        ),
        listener=base.listener,
        waker=base.waker,
        telemetry=base.telemetry,
        pace=SealerPace(
            interval_seconds=settings.sealer.interval_seconds,
            sweep_seconds=settings.sealer.sweep_seconds,
        ),
        limits=lead_limits(settings),
        clock=ClockCheck(seconds_max=settings.sealer.clock_seconds_max),
    )
    base.readiness.watch("sealer", lambda: sealer.refusal)
    base.readiness.watch("lead", lambda: sealer.blocked)
    base.telemetry.observe(gauges.CLOCK_OFFSET, lambda: [(sealer.clock.database_ahead_seconds, {})])
    base.telemetry.observe(gauges.SEALER_LEADS, lambda: [(float(sealer.leads), {})])
    base.telemetry.observe(gauges.SEALER_REFUSES, lambda: [(float(sealer.refusal is not None), {})])
    parts = [Component(name="sealer", run=sealer.run, stop=sealer.stop)]
    authority = _authority(settings.checkpoint)
    if authority is not None:
        stamper = Stamper(
            base.pool,
            authority,
            leads=lambda: sealer.leads,
            sealed=sealer.watch(),
            telemetry=base.telemetry,
        )
        parts.append(Component(name="stamper", run=stamper.run, stop=stamper.stop))
    if store is not None:
        publisher = Publisher(
            base.pool,
            store,
            interval_seconds=settings.checkpoint.publish_seconds,
            leads=lambda: sealer.leads,
            sealed=sealer.watch(),
            telemetry=base.telemetry,
        )
        base.readiness.watch("publisher", lambda: publisher.refusal)
        parts.append(Component(name="publisher", run=publisher.run, stop=publisher.stop))
    for role, jobs in named_parts("jobs"):
        if role == "sealer":
            parts += jobs(launch, base, sealer)
    return parts


def _authority(settings: CheckpointSettings) -> Authority | None:
    trust = stamp_trust(settings)
    if settings.stamp_url is None or trust is None:
        return None
    return Authority(url=settings.stamp_url, trust=trust, interval_seconds=settings.stamp_seconds)
