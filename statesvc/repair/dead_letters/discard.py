"""Giving dead letters up, with a reason that the log keeps. Nothing is deleted: a discarded letter is listed as such."""

from statesvc.database.queries import queries
from statesvc.log.actions import record_action
from statesvc.repair.dead_letters.put_back import Connection, Order

_SQL = queries("statesvc.repair.dead_letters", "discard")

BATCH = 1_000


async def discard(connection: Connection, order: Order, *, up_to: int, limit: int = BATCH) -> int:
    """Discards up to `limit` open letters with an id of at most `up_to`, and records it in the same transaction. Answers how many."""
    parameters = {**order.parameters, "up_to": up_to, "limit": limit, "actor": order.actor, "why": order.why, "run_id": order.run_id}
    async with connection.transaction():
        discarded = (await connection.execute(_SQL["discard"], parameters)).rowcount
        if discarded:
            await record_action(
                connection,
                actor=order.actor,
                verb="discard",
                target=order.target,
                details={"run": str(order.run_id), "why": order.why, **order.wanted.stated, "discarded": discarded},
            )
    return discarded
