"""What the role `api` reads of the database when it is scraped."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from statesvc.inbox.queue_depths import Depths
from statesvc.log.archive.folder import archive_folder
from statesvc.operations.database_gauges import DatabaseGauges
from statesvc.roles.runtime import Launch, Runtime


def sampling(launch: Launch, base: Runtime) -> Callable[[], Awaitable[None]]:
    """What brings the metrics up to date; they show the last reading."""
    database, archive = launch.settings.database, archive_folder(launch.settings)
    volumes = {"data": database.data_dir} if database.database_url is None else {}
    depths = Depths(base.pool)
    gauges = DatabaseGauges(base.pool, volumes={**volumes, "archive": archive} if isinstance(archive, Path) else volumes)
    depths.report_to(base.telemetry)
    gauges.report_to(base.telemetry)

    async def sample() -> None:
        await asyncio.gather(depths.sample(), gauges.sample())

    return sample
