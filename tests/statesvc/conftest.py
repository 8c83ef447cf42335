"""A pool of the service, connections of the service and the owner to a database of its own, and a
line to it that can be cut.
"""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.soak.proxy import Proxy, proxy_to

ANOTHER_WAITS = (
    "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pg_backend_pid() = ANY"
    " (pg_blocking_pids(pid)))"
)
"""Whether another session waits for a lock of this one."""


class HandClock:
    """A clock in place of `time.monotonic`, which a test moves."""

    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


async def one(connection: AsyncConnection[Any], statement: str) -> Any:
    """Return the first value that a statement answers with."""
    row = await (await connection.execute(statement)).fetchone()
    assert row is not None
    return row[0]


@pytest.fixture
async def line(database: Any) -> AsyncIterator[Proxy]:
    """Carry what `line_dsn` asks the database; it can be cut, stalled and healed."""
    async with proxy_to(int(str(conninfo_to_dict(database.service_dsn)["port"]))) as proxy:
        yield proxy


@pytest.fixture
def line_dsn(database: Any, line: Proxy) -> str:
    return make_conninfo(database.service_dsn, host="127.0.0.1", port=line.port)


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, without any setting."""
    for name in [*os.environ]:
        if name == "DATABASE_URL" or name.startswith("STATESVC_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path
