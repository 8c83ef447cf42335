"""Notifier and sealer in a process, for `statesvc up`: both mostly wait, and share memory.

Only the worker reads messages, so no message can end this process.
"""

from statesvc.database.wakeups.wakeup import LOG, OUTBOX
from statesvc.roles.connection_limits import worker_limits
from statesvc.roles.http_server import run_with_health
from statesvc.roles.notifier_role import notifier_component
from statesvc.roles.runtime import Launch, open_runtime
from statesvc.roles.sealer_role import sealer_components


async def run(launch: Launch) -> int:
    """Run until it is asked to stop; return the exit code."""
    limits = worker_limits(launch.settings)
    async with (
        open_runtime(launch, limits, channels=[OUTBOX, LOG]) as base,
        notifier_component(launch, base) as notifier,
    ):
        return await run_with_health(launch, base, [notifier, *sealer_components(launch, base)])
