"""No step of the archiver reads more than its day, and the hot tables are set up
for what they go through.
"""

import json
import re
from typing import Any

import pytest

from statesvc.database.queries import queries, timestamps, uuids
from statesvc.files.body_record import FIRST, bounds
from tests.world.body_archiver import Archiver
from tests.world.worker_harness import push_body

MESSAGES = 300


async def plan(
    archiver: Archiver, file: str, name: str, parameters: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return every node of the plan that ran."""
    query = re.sub(r"^--.*\n", "", queries(*file.rsplit(".", 1))[name], flags=re.MULTILINE)
    cursor = await archiver.harness.connection.execute(
        f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}".encode(), parameters
    )
    row = await cursor.fetchone()
    assert row is not None
    document = row[0] if not isinstance(row[0], str) else json.loads(row[0])

    def nodes(node: dict[str, Any]) -> list[dict[str, Any]]:
        return [node, *(deeper for inner in node.get("Plans", ()) for deeper in nodes(inner))]

    return [node for node in nodes(document[0]["Plan"]) if node["Actual Loops"]]


@pytest.fixture
async def filled(archiver: Archiver) -> Archiver:
    """Fill three days of messages, and collect statistics."""
    for _ in range(3):
        await archiver.harness.push(
            *(
                push_body({"number": f"N{n}", "status": "in_transit", "minute": n}, envelope=n)
                for n in range(MESSAGES)
            )
        )
        await archiver.harness.work()
        await archiver.days_pass(1)
    await archiver.harness.as_owner(
        "INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at, message_id) SELECT"
        " 'message', 'unreadable', 'acme', statesvc.clock(), gen_random_uuid() FROM"
        " generate_series(1, 2000)"
    )
    # a queue that fits into a few pages may well be read whole
    await archiver.harness.as_owner(
        "INSERT INTO statesvc.inbox (message_id, received_at, available_at, body_bytes, carrier_id,"
        " sealed_key) SELECT gen_random_uuid(), statesvc.clock(), statesvc.clock(), 100, 'acme', ''"
        " FROM generate_series(1, 20000)"
    )
    await archiver.harness.as_owner("ANALYZE")
    return archiver


@pytest.mark.slow
async def test_a_batch_reads_its_own_day_and_probes_everything_else_by_key(
    filled: Archiver,
) -> None:
    day = await filled.harness.value(
        "SELECT (min(received_at) AT TIME ZONE 'UTC')::date FROM statesvc.body"
    )
    asked = {**bounds(day), "holds": True, "after": FIRST, "limit": 100, "bytes_max": 1 << 30}
    nodes = await plan(filled, "statesvc.addons.archive.day", "day_bodies", asked)
    assert [node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"] == []
    bodies = {
        node["Relation Name"]
        for node in nodes
        if str(node.get("Relation Name", "")).startswith("body_")
    }
    assert bodies == {f"body_{day:%Y%m%d}"}
    assert max(node["Actual Rows"] for node in nodes) <= 101


@pytest.mark.slow
async def test_a_body_is_found_by_probes_in_its_own_day(filled: Archiver) -> None:
    found = await filled.harness.rows(
        "SELECT message_id, received_at FROM statesvc.message ORDER BY received_at LIMIT 5"
    )
    asked = {
        "message_ids": uuids([row[0] for row in found]),
        "received_ats": timestamps([row[1] for row in found]),
    }
    for name in ("hot_bodies", "body_locations"):
        nodes = await plan(filled, "statesvc.bodies.find_bodies", name, asked)
        scanned = {node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"} - {
            "body_retained",
            "body_archive",
        }
        assert scanned == set(), name
        partitions = {
            node["Relation Name"]
            for node in nodes
            if str(node.get("Relation Name", "")).startswith("body_2")
        }
        assert partitions == {f"body_{found[0][1]:%Y%m%d}"}, name


async def test_ciphertext_is_stored_without_a_try_to_compress_it(archiver: Archiver) -> None:
    rows = await archiver.harness.rows(
        "SELECT DISTINCT c.relname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE"
        " c.relnamespace = 'statesvc'::regnamespace AND c.relname ~ '^(body|normalized)' AND"
        " c.relkind IN ('r', 'p') AND a.attname = 'sealed' AND a.attstorage <> 'e'"
    )
    assert rows == []
