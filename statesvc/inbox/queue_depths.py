"""How much waits, by carrier and at the way out.

The cost is bounded: a lane and state is counted through its index as far as `COUNT_MAX` (some 10 ms each at that depth), leases are few.
A count that reached it says so in `counts_capped`.
"""

from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from statesvc.database.queries import queries

_SQL = queries("statesvc.inbox", "queue_depths")

COUNT_MAX: Final = 100_000
"""Beyond it a count means: at least so many."""


async def queue_json(connection: AsyncConnection[Any]) -> dict[str, Any]:
    """What is ready counts as `held` while the carrier's kill switch, or the one of all, is on."""
    cursor = connection.cursor(binary=True, row_factory=dict_row)
    bound = {"count_max": COUNT_MAX}
    lanes = await (await cursor.execute(_SQL["lanes"], bound)).fetchall()
    outbox = await (await cursor.execute(_SQL["outbox"], bound)).fetchone() or {}
    dead_letters: dict[str, int] = await (await cursor.execute(_SQL["open_dead_letters"], bound)).fetchone() or {}
    carriers = {
        lane["carrier_id"]: {
            "ready": 0 if lane["held"] else lane["waiting"],
            "leased": lane["leased"],
            "scheduled": lane["scheduled"],
            "held": lane["waiting"] if lane["held"] else 0,
            "oldest_ready_seconds": None if lane["held"] or lane["oldest_seconds"] is None else round(lane["oldest_seconds"], 3),
        }
        for lane in lanes
    }
    counts = [*outbox.values(), *dead_letters.values(), *(count for lane in lanes for count in (lane["waiting"], lane["scheduled"]))]
    return {"carriers": carriers, "outbox": outbox, **dead_letters, "counts_capped": max(counts) >= COUNT_MAX}
