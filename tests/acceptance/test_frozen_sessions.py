"""Sessions whose processes of the server are stopped while they are idle: each role leaves them,
and nothing acknowledged is lost.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict

from tests.acceptance.all_roles import (
    ROLES,
    SHORT_WAITS,
    all_are_ready,
    all_end_and_nothing_is_lost,
    all_roles,
    everything_works,
    well_again,
)
from tests.acceptance.processes import until_false
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.steady_pushes import steady_pushes
from tests.world import postgres

# five roles, and faults that last for seconds
pytestmark = pytest.mark.timeout(400)

PER_SECOND = 30.0
IDLE = (
    "SELECT pid FROM pg_stat_activity WHERE datname = %s AND state = 'idle' AND application_name"
    " LIKE 'statesvc %%' AND application_name <> 'statesvc sealer'"
)
"""A stopped lead keeps its lock, whatever the sealers do:
tests/statesvc/sealer/test_sealer_loop.py.
"""


@pytest.fixture
def server() -> Iterator[postgres.Server]:
    """Return a server of the test's own: nobody can drop a database while a process of
    its server is stopped.
    """
    with postgres.own_server() as mine:
        yield mine


async def test_sessions_that_were_stopped_while_idle(
    service_maker: ServiceMaker, server: postgres.Server, tmp_path: Path
) -> None:
    service = await service_maker(tmp_path)
    async with all_roles(service, **SHORT_WAITS) as (roles, subscriber):
        async with steady_pushes(service, roles[0], per_second=PER_SECOND) as pushes:
            await everything_works(service, subscriber, pushes)
        await service.drained()
        await until_false(
            lambda: service.value(
                "SELECT EXISTS (SELECT FROM statesvc.outbox) OR EXISTS (SELECT FROM"
                " statesvc.unsealed)"
            )
        )
        async with await AsyncConnection.connect(server.superuser_dsn, autocommit=True) as admin:
            name = conninfo_to_dict(service.service_dsn)["dbname"]
            idle = [pid for (pid,) in await (await admin.execute(IDLE, (name,))).fetchall()]
        assert len(idle) >= len(ROLES)
        with stopped(idle):
            async with steady_pushes(service, roles[0], per_second=PER_SECOND) as more:
                since = time.monotonic()
                await well_again(more, since)
                await everything_works(service, subscriber, more)
                await all_are_ready(service, roles)
            await all_end_and_nothing_is_lost(service, roles, more)


@contextmanager
def stopped(backends: list[int]) -> Iterator[None]:
    """Stop processes of the server for the time of the block."""
    for pid in backends:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in backends:
            os.kill(pid, signal.SIGCONT)
