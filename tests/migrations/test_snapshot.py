"""`migrations/generated/schema.sql` is what the migrations make; and of what they make, each
function's text stands in one place.
"""

import asyncio
import difflib
import re
from collections import Counter
from typing import Any

import pytest
from psycopg import AsyncConnection

from statesvc.database.migrator import migrate
from tests.migrations.snapshot import COMMAND, FILE, snapshot

MAJOR = 18
"""Others word some definitions in another way."""


async def _differences(database: Any) -> str:
    """Return the differences between the file and this database."""
    async with await AsyncConnection.connect(database.owner_dsn) as owner:
        if owner.info.server_version // 10_000 != MAJOR:
            pytest.skip(f"the file was written by PostgreSQL {MAJOR}")
    found = await asyncio.to_thread(snapshot, database.superuser_dsn)
    committed = FILE.read_text("utf-8")
    return "\n".join(
        difflib.unified_diff(
            committed.splitlines(),
            found.splitlines(),
            FILE.name,
            "the migrated schema",
            lineterm="",
        )
    )


async def test_the_snapshot_is_what_the_migrations_make(bare_database: Any) -> None:
    await migrate(bare_database.owner_dsn, bare_database.service_dsn)
    differences = await _differences(bare_database)
    assert not differences, (
        f"review the difference, then write it down with `{COMMAND}`:\n{differences}"
    )


def test_each_function_is_defined_once_and_whole() -> None:
    texts = [file.read_text("utf-8") for file in FILE.parents[1].rglob("*.sql")]
    defined = Counter(
        name
        for text in texts
        for name in re.findall(r"CREATE (?:OR REPLACE )?FUNCTION statesvc\.(\w+)\(", text)
    )
    assert defined["claim"] == 1
    assert {name for name, times in defined.items() if times > 1} == {
        "await_sealing",
        "make_append_only",
        "next_batch_id",
    }
    assert not any(re.search(r"ALTER FUNCTION|pg_get_functiondef", text) for text in texts)
