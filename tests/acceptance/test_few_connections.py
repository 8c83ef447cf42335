"""All roles on a server that gives them few connections: they work, slower; with too few
nothing starts, and says why.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.acceptance.all_roles import all_roles
from tests.acceptance.processes import Service
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.steady_pushes import steady_pushes
from tests.world.postgres import Server
from tests.world.waiting import until

# five roles, and their start
pytestmark = pytest.mark.timeout(400)

PER_SECOND = float(os.environ.get("STATESVC_TEST_PUSHES_PER_SECOND", "100"))
SECONDS = float(os.environ.get("STATESVC_TEST_PUSH_SECONDS", "4"))
PASSWORD = "of-a-role-with-few-connections"


@pytest.fixture
async def limited_role(server: Server) -> AsyncIterator[Callable[[int], str]]:
    """Make a role like the service's with a limit of its own; it ends with the test, after the
    databases where it owns something.
    """
    made: list[str] = []

    def make(limit: int) -> str:
        name = f"limited_{uuid4().hex[:12]}"
        with psycopg.connect(server.superuser_dsn, autocommit=True) as admin:
            statement = (
                "CREATE ROLE {} LOGIN PASSWORD {} IN ROLE statesvc_service, pg_read_all_stats"
                " CONNECTION LIMIT {}"
            )
            admin.execute(
                sql.SQL(statement).format(
                    sql.Identifier(name), sql.Literal(PASSWORD), sql.Literal(limit)
                )
            )
        made.append(name)
        return name

    yield make
    with psycopg.connect(server.superuser_dsn, autocommit=True) as admin:
        for name in made:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (name,)
            )
            admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


async def connections_found(service: Service, **settings: str) -> dict[str, Any]:
    _, output, _ = await service.run("doctor", "--json", settings=settings)
    (found,) = [each for each in json.loads(output) if each["about"] == "connections"]
    return dict(found)


@pytest.mark.parametrize("limit", [24, 14])
async def test_all_pushes_are_notified_and_the_kill_switch_finds_a_place(
    limited_role: Callable[[int], str],
    service_maker: ServiceMaker,
    tmp_path: Path,
    limit: int,
) -> None:
    service = await service_maker(tmp_path, behind_pooler=False)
    role = limited_role(limit)
    mine = {"DATABASE_URL": make_conninfo(service.service_dsn, user=role, password=PASSWORD)}
    async with all_roles(service, **mine) as (roles, subscriber):
        async with steady_pushes(service, roles[0], per_second=PER_SECOND) as pushes:
            await asyncio.sleep(SECONDS / 2)
            exit_code, _, errors = await service.run(
                "rollout", "hold", "ups", "--why", "test", settings=mine
            )
            assert exit_code == 0, errors
            await asyncio.sleep(SECONDS / 2)
        assert [answer for answer in pushes.answers if answer.status != 200] == []
        await until(lambda: subscriber.received >= len(pushes.answers), 60)
        # by a process of its own, with a connection more
        assert (await service.get("/v1/shipments/canonical/SP00000001/evidence"))[0] == 200
        found = await connections_found(service, **mine)
        assert found["severity"] == ("ok" if limit == 24 else "warn"), found
        for process in roles:
            assert '"level":"error"' not in process.log.read_text()
