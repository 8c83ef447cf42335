"""A clock that tests move, for the embedded server of a test run: later events happen at once."""

from datetime import timedelta
from pathlib import Path
from typing import Final

from psycopg import AsyncConnection

from statesvc.database.embedded import attach
from statesvc.database.wakeups.wakeup import LOG, OUTBOX, READY_NOW, notify
from statesvc.seams import parts

MOVABLE_CLOCK: Final = Path(__file__).with_suffix(".sql").read_text("utf-8")
_WORKER: Final = "test-clock"


async def advance_clock(data_dir: Path, by: timedelta) -> None:
    """Move the clock of the embedded server of this folder, and do the work due by then.

    Raises LookupError where no server runs. `statesvc doctor` reports the clock as redefined
    from then on.
    """
    dsns = attach(data_dir)
    if dsns is None:
        raise LookupError(f"no embedded server runs on {data_dir}")
    async with await AsyncConnection.connect(dsns.owner, autocommit=True) as owner:
        async with owner.transaction():
            await owner.execute("SELECT statesvc.announce_log_ddl('tests move the clock')")
            await owner.execute(MOVABLE_CLOCK.encode())
        await owner.execute("UPDATE statesvc.test_clock SET shift = shift + %s", (by,))
        await owner.execute("SELECT count(*) FROM statesvc.ensure_partitions()")
    async with await AsyncConnection.connect(dsns.service, autocommit=True) as service:
        for catch_up in parts("catch_up"):
            await catch_up(service, worker=_WORKER)
        await notify(service, *READY_NOW, OUTBOX, LOG)
