"""The append's statements are planned once, on tables that may be empty then: no such plan reads a
table that grows whole.
"""

import re
from typing import Any
from uuid import uuid4

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.queue.claim import lock_leased

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


async def test_plans_that_were_made_of_empty_tables_serve_full_ones(database: Any) -> None:
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
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
