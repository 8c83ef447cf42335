"""The append: locks in the order of ARCHITECTURE.md, and no scan on a filled table."""

import re
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

from psycopg import AsyncConnection

from events.identity.recipe import Recipe
from events.identity.recipes import RECIPES
from statesvc.database.pipelined import Pipeline, PipelinedRows
from statesvc.database.queries import queries
from statesvc.queue.claim import lock_leased
from tests.world.worker_harness import CARRIER_ID, WorkerHarness, push_body

ROOT = Path(__file__).parents[3]
LOCKED = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM|FROM) statesvc\.(\w+)")
TAKES_LOCKS = re.compile(r"INSERT INTO|UPDATE|DELETE FROM")
ADDED = frozenset({"outbox"})
"""The append only adds rows."""


def lock_order() -> list[str]:
    section = (ROOT / "ARCHITECTURE.md").read_text().split("## Lock order")[1]
    (line,) = (line for line in section.splitlines() if " > " in line)
    return [re.findall(r"`(\w+)`", part)[0] for part in line.split(" > ")]


def locked_by(query: str) -> list[str]:
    if "statesvc.hold_leased" in query:
        return ["inbox"]
    return LOCKED.findall(query) if TAKES_LOCKS.search(query) else []


async def test_the_append_takes_its_locks_in_the_stated_order(harness: WorkerHarness) -> None:
    order, taken = lock_order(), list[str]()
    execute = Pipeline.execute

    async def recording(
        self: Pipeline, query: Any, params: Any = None, **options: Any
    ) -> PipelinedRows:
        taken.extend(table for table in locked_by(query) if table in order and table not in ADDED)
        return await execute(self, query, params, **options)

    await harness.ingest({"number": "A", "status": "picked_up", "native_id": "1"})
    with patch.dict(
        RECIPES,
        {
            CARRIER_ID: Recipe(
                time="local",
                codes=("code",),
                also=(Recipe(time="local", place=("city", "country")),),
            )
        },
    ):
        await harness.push(
            push_body(
                {"number": "A", "status": "in_transit", "minute": 5, "code": "M"},
                {"number": "A", "status": "delivered", "minute": 9, "native_id": "1"},
                {"number": "NEW", "kind": "unmapped", "minute": 6, "code": "UNKNOWN"},
                rejected=1,
                named=["ONLY"],
            )
        )
        with patch.object(Pipeline, "execute", recording):
            await harness.work()
    firsts = list(dict.fromkeys(taken))
    assert firsts == sorted(firsts, key=order.index)
    assert set(firsts) == {"inbox", "stream", "conflict_key", "event_key", "dead_letter"}
    assert (
        await harness.value("SELECT count(*) FROM statesvc.event_key WHERE alias_of IS NOT NULL")
        > 0
    ), "an alias was among it"


STATEMENTS = {
    ("statesvc.log", "event_store"): (
        "known_keys",
        "read_streams",
        "lock_streams",
        "reserve_streams",
        "move_heads",
        "read_events",
    ),
    ("statesvc.log", "parcel_log"): ("link_streams", "parcel_changes", "parcels_of"),
    ("statesvc.shipments", "projection_store"): ("read_states", "save_shipments"),
    ("statesvc.queue", "claim"): ("settle",),
}
GROWING = re.compile(r"Seq Scan on (event|event_key|stream|shipment|inbox|message)\w*")
SCANS = "SELECT pg_stat_get_xact_numscans('statesvc.inbox'::regclass)::int"
"""Count of the times that the inbox was read whole."""
LEASED = """
INSERT INTO statesvc.inbox (message_id, received_at, available_at, body_bytes, carrier_id, sealed_key, token, worker)
VALUES (%s, now(), now(), 1, 'acme', '', %s, 'w')
"""
PARAMETER = re.compile(r"%\(\w+\)[bs]")


def numbered(query: str) -> str:
    """Replace the parameters by $1, $2, one each time that it stands there."""
    names = list(dict.fromkeys(PARAMETER.findall(query)))
    return PARAMETER.sub(lambda found: f"${names.index(found[0]) + 1}", query)


async def test_plans_that_were_made_of_empty_tables_serve_full_ones(
    database: Any, owner: AsyncConnection[Any]
) -> None:
    await owner.execute("VACUUM ANALYZE")
    async with (
        await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection,
        connection.transaction(),
    ):
        message_id, token = uuid4(), uuid4()
        await connection.execute(LEASED, [message_id, token])
        assert await (
            await lock_leased(connection, token, [message_id], lock_seconds=1)
        ).rows() == {message_id}
        assert await (await connection.execute(SCANS)).fetchone() == (0,)
        assert await (await connection.execute("SHOW plan_cache_mode")).fetchone() == (
            "force_generic_plan",
        )
        for module, names in STATEMENTS.items():
            for name in names:
                statement: Any = f"EXPLAIN (GENERIC_PLAN) {numbered(queries(*module)[name])}"
                plan = "\n".join(
                    line for (line,) in await (await connection.execute(statement)).fetchall()
                )
                assert not GROWING.search(plan), f"{name}\n{plan}"
