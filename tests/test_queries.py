"""Every named query of the tree is planned on the migrated schema, with all parameters NULL, by the role that runs it."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import AsyncConnection

from statesvc.database.queries import queries
from tests.world.postgres import Server, create_database, drop_database

ROOT = Path(__file__).parents[1]
PARAMETER = re.compile(r"(?<!%)%\((\w+)\)[sbt]")
PLANNED = re.compile(r"(SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|VALUES|TABLE)\b", re.IGNORECASE)
OWNERS = {
    "statesvc/database/migrator.sql",
    "statesvc/repair/key_rotation.sql",
    "statesvc/sealer/fork.sql",
    "statesvc/shipments/rebuild/rebuild.sql",
}
"""Run by the role that owns the schema; all others by the service's role, whose privileges must suffice."""


def named_queries() -> Iterator[tuple[str, str]]:
    for package in ("events", "projections", "statesvc"):
        for file in sorted((ROOT / package).rglob("*.sql")):
            origin = str(file.relative_to(ROOT))
            if "-- name:" in file.read_text("utf-8"):
                for name in queries(".".join(file.parent.relative_to(ROOT).parts), file.stem):
                    yield origin, name


@pytest.fixture(scope="module")
def migrated(server: Server) -> Iterator[Server]:
    """One database for all queries: none of them changes it."""
    name = asyncio.run(create_database(server))
    yield server.on(name)
    asyncio.run(drop_database(server, name))


@pytest.mark.parametrize(("origin", "name"), list(named_queries()))
async def test_a_named_query_can_be_planned_and_says_what_it_is_for(migrated: Server, origin: str, name: str) -> None:
    file = ROOT / origin
    text = queries(".".join(file.parent.relative_to(ROOT).parts), file.stem)[name]
    purpose, _, statement = text.partition("\n")
    assert re.match(r"-- \w", purpose), "its first line says what it is for"
    bare = re.sub(r"^--.*\n", "", statement, flags=re.MULTILINE).strip()
    parameters = dict.fromkeys(PARAMETER.findall(statement))
    dsn = migrated.owner_dsn if origin in OWNERS else migrated.service_dsn
    async with await AsyncConnection.connect(dsn) as connection:
        query = f"EXPLAIN {bare}" if PLANNED.match(bare) else bare
        await connection.execute(query.encode(), parameters or None)
        await connection.rollback()


async def test_a_broken_query_would_be_noticed(migrated: Server) -> None:
    async with await AsyncConnection.connect(migrated.service_dsn) as connection:
        with pytest.raises(psycopg.errors.UndefinedColumn):
            await connection.execute("EXPLAIN SELECT nonsense FROM statesvc.event WHERE carrier_id = %(carrier_id)s", {"carrier_id": None})
