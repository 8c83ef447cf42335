"""Every named query of the tree is planned on the migrated schema, with all parameters NULL, by
the role that runs it.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from statesvc.database.queries import queries
from statesvc.log.entry_row import entry_statements
from tests.world.postgres import Server, create_database, drop_database

ROOT = Path(__file__).parents[1]
PARAMETER = re.compile(r"(?<!%)%\((\w+)\)[sbt]")
PLANNED = re.compile(r"(SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|VALUES|TABLE)\b", re.IGNORECASE)
OWNERS = {
    "statesvc/database/migrator.sql",
    "statesvc/privacy/key_rotation.sql",
    "statesvc/sealer/fork.sql",
    "statesvc/shipments/rebuild/rebuild.sql",
}
"""Run by the role that owns the schema; all others by the service's role, whose
privileges must suffice.
"""


FILES = sorted(
    str(file.relative_to(ROOT))
    for package in ("events", "projections", "statesvc")
    for file in (ROOT / package).rglob("*.sql")
    if "-- name:" in file.read_text("utf-8")
)


@pytest.fixture(scope="module")
def connections(server: Server) -> Iterator[Callable[[str], Connection[Any]]]:
    """Open a connection of each role to one database for all queries, by the file that they are in:
    none of them changes it.
    """
    name = create_database(server)
    migrated = server.on(name)
    with (
        Connection.connect(migrated.owner_dsn) as owner,
        Connection.connect(migrated.service_dsn) as service,
    ):
        yield lambda origin: owner if origin in OWNERS else service
    drop_database(server, name)


def test_each_named_query_can_be_planned_and_says_what_it_is_for(
    connections: Callable[[str], Connection[Any]],
) -> None:
    for origin in FILES:
        file = ROOT / origin
        for name, text in queries(".".join(file.parent.relative_to(ROOT).parts), file.stem).items():
            statements = entry_statements(text) if "{table}" in text else {name: text.encode()}
            try:
                for statement in statements.values():
                    assert_planned(connections(origin), statement.decode())
            except (AssertionError, psycopg.Error) as error:
                error.add_note(f"the query {name} of {origin}")
                raise


def assert_planned(connection: Connection[Any], text: str) -> None:
    purpose, _, statement = text.partition("\n")
    assert re.match(r"-- \w", purpose), "its first line says what it is for"
    bare = re.sub(r"^--.*\n", "", statement, flags=re.MULTILINE).strip()
    query = f"EXPLAIN {bare}" if PLANNED.match(bare) else bare
    with connection.transaction(force_rollback=True):
        connection.execute(query.encode(), dict.fromkeys(PARAMETER.findall(statement)) or None)


def test_each_on_conflict_names_the_key_that_it_expects() -> None:
    """Without one, any collision is taken for the expected one, and the row disappears."""
    untargeted = [
        f"{file.relative_to(ROOT)}: {conflict[0]}"
        for package in ("migrations", "statesvc")
        for file in (ROOT / package).rglob("*")
        if file.suffix in {".sql", ".py"}
        for conflict in re.finditer(
            r"ON\s+CONFLICT\s+(?!\()\w+", file.read_text("utf-8"), re.IGNORECASE
        )
    ]
    assert untargeted == []
