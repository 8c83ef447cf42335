"""While the database takes no writes the overview is there, says so first, and lets people in to
see it.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from psycopg import AsyncConnection, sql

from statesvc.database.pool import PoolLimits
from tests.world.console import LOGIN, ConsoleClient, words
from tests.world.database import Database
from tests.world.worker_harness import LIMITS

FIRST = "NOW pushes : the database takes no writes (default_transaction_read_only is on)"


@pytest.fixture
def pool_limits() -> PoolLimits:
    return replace(LIMITS, acquire_seconds=0.5)


@pytest.fixture
async def only_reading(
    console: ConsoleClient, database: Database
) -> AsyncIterator[AsyncConnection[Any]]:
    """Make it so, of all that connects from now on; yields a connection that can end it."""
    await console.log_in("ops")
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as admin:
        await set_only_reading(admin, "SET default_transaction_read_only = on")
        async with asyncio.timeout(30):
            # the pool has to find out first
            while (await console.get("/console")).status != 200:  # noqa: ASYNC110 - the page tells
                await asyncio.sleep(0.05)
        yield admin


async def set_only_reading(admin: AsyncConnection[Any], setting: str) -> None:
    await admin.execute(
        sql.SQL("ALTER DATABASE {} {}").format(sql.Identifier(admin.info.dbname), sql.SQL(setting))
    )
    await admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE"
        " 'api-test%' AND datname = current_database()"
    )


async def test_the_overview_says_first_that_the_database_only_reads_and_what_to_do(
    console: ConsoleClient, only_reading: AsyncConnection[Any]
) -> None:
    overview = await console.text("/console")
    assert FIRST in overview
    assert "`ALTER DATABASE ... RESET default_transaction_read_only` ends it" in overview
    assert overview.index(FIRST) == overview.index("NOW ")
    assert "takes no writes" in await console.text("/console/runbook/AckAvailability")
    # what answers for the newest state does not answer from such a server
    assert (await console.get("/console/record")).status == 503
    await set_only_reading(only_reading, "RESET default_transaction_read_only")


async def test_a_session_that_cannot_be_stored_reads_for_an_hour(
    console: ConsoleClient, only_reading: AsyncConnection[Any]
) -> None:
    await console.post("/console/logout", form_token=await console.form_token("/console"))
    console.client.session.cookie_jar.clear()
    entered = await console.log_in("ops", may_change="on")
    assert entered.status == 303
    assert FIRST in await console.text("/console")
    assert "Read-only" in await console.text("/console")
    refused = await console.post(
        "/console/changes", form_token=await console.form_token("/console"), may_change="1"
    )
    assert "log out, and in again" in words(await refused.text())
    assert (
        await console.post("/console/logout", form_token=await console.form_token("/console"))
    ).headers["Location"] == LOGIN
    await set_only_reading(only_reading, "RESET default_transaction_read_only")


async def test_a_signed_session_of_somebody_else_is_none(console: ConsoleClient) -> None:
    console.client.session.cookie_jar.update_cookies(
        {"statesvc": "a.b.c"}, console.client.make_url("/")
    )
    assert (await console.get("/console")).status == 303
