"""Rows that a page of `renormalize` reads on a filled table: those that lie next,
however rare the carrier is.
"""

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from statesvc.database.queries import queries

MESSAGES: Final = 20_000
CARRIERS: Final = 10
LIMIT: Final = 50
FILL: Final = """
INSERT INTO statesvc.message
SELECT uuidv7(), statesvc.clock(), statesvc.clock(), 1, 1, 'c' || mod(n, %(carriers)s), 'applied', 'c@1', 'w', '{}', NULL
FROM generate_series(1, %(messages)s) AS n
"""


def rows_read(plan: dict[str, Any]) -> Iterator[float]:
    """Yield the rows of each scan in a plan, those that a filter removed included."""
    if "Relation Name" in plan:
        yield plan["Actual Loops"] * (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0))
    for inner in plan.get("Plans", ()):
        yield from rows_read(inner)


async def test_a_page_reads_what_lies_next(database: Any) -> None:
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as connection:
        await connection.execute(FILL, {"messages": MESSAGES, "carriers": CARRIERS})
        await connection.execute("ANALYZE statesvc.message")
        middle = "SELECT message_id FROM statesvc.message ORDER BY message_id OFFSET %s LIMIT 1"
        (after,) = await (await connection.execute(middle, (MESSAGES // 2,))).fetchone() or (
            UUID(int=0),
        )
        query = (
            "EXPLAIN (ANALYZE, FORMAT json) "
            + queries("statesvc.addons.mappings", "history_reread")["next_messages"]
        )
        asked = {
            "carrier_id": "rare",
            "since": None,
            "read_by": None,
            "after": after,
            "limit": LIMIT,
        }
        (found,) = await (await connection.execute(query, asked)).fetchone() or ([],)
    plan = found[0]["Plan"]
    assert plan["Actual Rows"] == LIMIT
    assert sum(rows_read(plan)) == LIMIT
