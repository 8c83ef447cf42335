"""State machines of Hypothesis on a real database whose clock stands still unless it is moved."""

import asyncio
from collections.abc import Coroutine
from datetime import datetime
from itertools import count
from typing import Any, Final, TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from psycopg import AsyncConnection

from statesvc.log.history import History
from statesvc.shipments.rebuild.rebuild import Rebuild
from tests.world.database import Database

T = TypeVar("T")
EXAMPLE: Final = count()
"""Each example has numbers of its own: the log is not emptied."""
_FROZEN_CLOCK: Final = """
CREATE TABLE IF NOT EXISTS statesvc.frozen_clock (at timestamptz NOT NULL);
INSERT INTO statesvc.frozen_clock SELECT date_trunc('minute', now()) WHERE NOT EXISTS (SELECT FROM statesvc.frozen_clock);
GRANT SELECT, UPDATE ON statesvc.frozen_clock TO PUBLIC;
CREATE OR REPLACE FUNCTION statesvc.clock() RETURNS timestamptz LANGUAGE sql VOLATILE RETURN (SELECT at FROM statesvc.frozen_clock);
"""
_MOVED: Final = b"UPDATE statesvc.frozen_clock SET at = at + make_interval(secs => %s) RETURNING at"


class DatabaseMachine(RuleBasedStateMachine):
    """Runs in a thread of its own; the database is asked in the test's."""

    loop: asyncio.AbstractEventLoop
    owner: AsyncConnection[Any]

    def run(self, task: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(task, self.loop).result(60)

    def move_clock(self, seconds: int) -> datetime:
        """Move the clock; return what it shows."""
        return self.run(self._move_clock(seconds))

    async def _move_clock(self, seconds: int) -> datetime:
        ((now,),) = await (await self.owner.execute(_MOVED, (seconds,))).fetchall()
        if seconds > 1:
            await self.owner.execute("SELECT count(*) FROM statesvc.ensure_partitions()")
        moved: datetime = now
        return moved


async def check_machine(
    machine: type[DatabaseMachine], database: Database, *, examples: int, **parts: Any
) -> None:
    """Run a machine that has these parts; a rebuild says the same in the end."""
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as owner:
        await owner.execute(_FROZEN_CLOCK.encode())
        here = {"loop": asyncio.get_running_loop(), "owner": owner, **parts}
        await asyncio.to_thread(
            run_state_machine_as_test,
            type(f"{machine.__name__}OnThisDatabase", (machine,), here),
            settings=settings(
                max_examples=examples,
                stateful_step_count=20,
                deadline=None,
                database=None,
                derandomize=True,
                # no shrinking: the database keeps what an example wrote, and minutes of it hide
                # the first failure
                phases=(Phase.generate,),
                suppress_health_check=list(HealthCheck),
            ),
        )
    task = Rebuild(
        owner_dsn=database.owner_dsn,
        actor="t",
        processes=1,
        progress=lambda *_: None,
        archive=History(None),
    )
    shipments, drift = await task.compare()
    assert (shipments > 0, drift) == (True, [])
