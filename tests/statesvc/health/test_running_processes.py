"""Why a database takes no writes, and what ends it, by where the setting comes from."""

import pytest
from psycopg import AsyncConnection, sql

from statesvc.health.running_processes import why_not_writable
from tests.world.database import Database


async def test_a_database_that_takes_writes_has_no_reason(database: Database) -> None:
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        assert await why_not_writable(connection) is None


@pytest.mark.parametrize(
    ("options", "altered", "remedy"),
    [
        ("", True, "`ALTER DATABASE ... RESET default_transaction_read_only` ends it"),
        (
            "-c default_transaction_read_only=on",
            False,
            "it was set by the client: take it out there",
        ),
    ],
    ids=["database", "client"],
)
async def test_the_remedy_follows_where_the_setting_comes_from(
    database: Database, options: str, *, altered: bool, remedy: str
) -> None:
    if altered:
        async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
            name = sql.Identifier(owner.info.dbname)
            await owner.execute(
                sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name)
            )
    async with await AsyncConnection.connect(
        database.service_dsn, options=options, autocommit=True
    ) as connection:
        found = await why_not_writable(connection)
    assert found is not None
    assert found.remedy.startswith(remedy)
