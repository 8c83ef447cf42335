"""`python -m statesvc.roles.computing_process`: computes an answer at a time for the role `api`.

It ends with that role.
"""

import asyncio
from typing import Final

import uvloop

from statesvc.api.computations import ComputingHere
from statesvc.api.computing import Sources
from statesvc.background.process_pool import Task, serve_tasks
from statesvc.database.keyring_store import load_keyring
from statesvc.database.pool import PoolLimits, make_pool
from statesvc.files.archive_folder import archive_folder
from statesvc.log.history import History
from statesvc.roles.master_key import open_master_keys
from statesvc.roles.runtime import require_database
from statesvc.settings.service_settings import Settings, load_settings
from statesvc.telemetry.logs import configure_logging, log_format

# Its connection is one that a command may need a moment later. It runs in idle time, so that to
# connect takes long where that is rare.
LIMITS: Final = PoolLimits(
    connections_min=0,
    connections_max=1,
    idle_seconds=2.0,
    acquire_seconds=30.0,
    statement_seconds=30.0,
    lock_seconds=5.0,
    idle_in_transaction_seconds=60.0,
)


async def compute(settings: Settings) -> None:
    tasks: dict[str, Task] = {}
    serve = serve_tasks(tasks)
    dsns = require_database(settings.database)
    prepared = settings.database.prepared_statements
    pool = make_pool(
        dsns.service,
        name="statesvc computing",
        limits=LIMITS,
        prepared_statements=prepared,
        direct=not dsns.is_pooled,
    )
    async with pool:
        async with pool.connection() as connection:
            keyring = await load_keyring(connection, await open_master_keys(settings, connection))
        folder = archive_folder(settings)
        tasks |= ComputingHere(
            Sources(pool=pool, keyring=keyring, folder=folder, archive=History(folder))
        ).tasks()
        await serve()


def main() -> None:
    settings = load_settings()
    configure_logging(
        process="computing",
        output_format=log_format(settings.telemetry),
        level=settings.telemetry.log_level,
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(compute(settings))


if __name__ == "__main__":
    main()
