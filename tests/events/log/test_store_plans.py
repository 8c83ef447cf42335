"""Every query of the log, the projection and the inbox is one that the database can plan, as the service's role."""

import hashlib
import json
import re
from typing import Any

import pytest
from psycopg import AsyncConnection

from events.log.actions import record_action
from events.sql.queries import queries

FILES = (
    ("events.log", "store"),
    ("projections", "shipment"),
    ("statesvc.inbox", "inbox"),
    ("statesvc.maintenance", "upkeep"),
    ("statesvc.submission", "submission"),
)
QUERIES = [(package, file, name) for package, file in FILES for name in queries(package, file)]


@pytest.mark.parametrize(("package", "file", "name"), QUERIES, ids=[f"{file}.{name}" for _, file, name in QUERIES])
async def test_it_is_planned(database: Any, package: str, file: str, name: str) -> None:
    query = queries(package, file)[name]
    parameters = dict.fromkeys(re.findall(r"%\((\w+)\)", query))
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        assert await (await connection.execute("EXPLAIN " + query, parameters)).fetchone()


async def test_an_action_is_an_entry_like_the_others(database: Any) -> None:
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        async with connection.transaction():
            await record_action(connection, actor="key:test", verb="hold", target="carrier ups", details={"why": "wrong codes"})
        cursor = await connection.execute(
            "SELECT a.canonical, a.leaf_hash, b.leaf_hashes, b.entries, a.ordinal"
            " FROM statesvc.action a JOIN statesvc.batch b USING (batch_id)"
        )
        ((canonical, leaf_hash, leaf_hashes, entries, ordinal),) = await cursor.fetchall()
    assert leaf_hash == leaf_hashes == hashlib.sha256(b"\x00" + canonical).digest()
    assert (entries, ordinal) == (1, 0)
    assert {"actor": "key:test", "verb": "hold", "details": {"why": "wrong codes"}}.items() <= json.loads(canonical).items()
