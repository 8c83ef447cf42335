"""A database that cannot hold what carriers say is refused in one sentence; a clock, or rights,
that are missing are named.
"""

from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import AsyncConnection

from statesvc.cli.doctor.server_checks import check_server
from statesvc.health.finding import Urgency
from tests.world.database import Database
from tests.world.postgres import Server, drop_database
from tests.world.shell import Shell, use


@pytest.mark.parametrize("encoding", ["LATIN1", "EUC_JP", "SQL_ASCII"])
async def test_a_database_of_another_encoding_is_refused(
    server: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    name = f"test_{uuid4().hex}"
    with psycopg.connect(server.superuser_dsn, autocommit=True) as admin:
        admin.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE"
            " template0 OWNER statesvc_owner"
        )
    try:
        use(Database.of(server.on(name)), monkeypatch)
        for command in ("migrate", "doctor"):
            said = await shell(command, exit_code=1)
            assert f"has the encoding {encoding}, and statesvc needs UTF8" in said
            assert "Traceback" not in said
    finally:
        drop_database(server, name)


async def test_a_clock_that_leapt_by_months_is_named(
    owner: AsyncConnection[Any], here: Shell
) -> None:
    await owner.execute("UPDATE statesvc.test_clock SET shift = '100 days'")
    for command in ("doctor", "status"):
        assert "s ahead of this machine's" in await here(command, exit_code=1)


async def test_entries_that_wait_for_their_time_are_named(
    owner: AsyncConnection[Any], here: Shell
) -> None:
    await owner.execute(
        "INSERT INTO statesvc.unsealed (batch_id, recorded_from) VALUES (1, statesvc.clock() +"
        " interval '1 hour')"
    )
    said = await here("status", exit_code=1)
    assert "feed, stream and proofs wait" in said
    assert "the database's clock was ahead then" in said


async def test_a_role_that_sees_only_its_own_sessions_is_named(database: Database) -> None:
    async def about_sessions(dsn: str) -> list[Urgency]:
        async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
            return [
                finding.urgency
                async for finding in check_server(connection)
                if finding.about == "sessions"
            ]

    assert await about_sessions(database.service_dsn) == []
    assert await about_sessions(database.auditor_dsn) == [Urgency.HUMAN]
