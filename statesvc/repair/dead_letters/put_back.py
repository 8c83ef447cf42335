"""The statements that replay and discard: putting back, its outcome, resolving.

Each is safe to repeat.
"""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.log.actions import record_action
from statesvc.log.batch_row import begin_batch, write_batch
from statesvc.log.fanouts import append_fanouts, repeated_fanouts
from statesvc.repair.dead_letters.dead_letter import Obstacle
from statesvc.repair.dead_letters.replay_plan import RepairRequest

_SQL = queries("statesvc.repair.dead_letters", "dead_letters")
DISCARDED_AT_ONCE: Final = 1_000
Connection = AsyncConnection[Any]


class ReplayVerdict(StrEnum):
    """The outcome of a dead letter that was put back."""

    WAITING = "waiting"
    SETTLED = "settled"
    BURIED = "buried"
    FAILING = "failing"


async def put_back(
    connection: Connection, request: RepairRequest, ids: Sequence[int]
) -> dict[int, Obstacle | None]:
    """Put messages and notifications back, each once however many callers do it.

    Return the obstacle for each; None: it is back. The log records in the same transaction that
    notifications go out again. Raises ArchivedHistoryError.
    """
    async with connection.transaction():
        cursor = await connection.execute(
            _SQL["put_back"], {**request.resolution, "ids": list(ids)}
        )
        answers = {
            dead_letter_id: Obstacle(obstacle) if obstacle else None
            for dead_letter_id, obstacle in await cursor.fetchall()
        }
        # fan-outs of these only: the statement left the others as they were
        back = [dead_letter_id for dead_letter_id, obstacle in answers.items() if obstacle is None]
        rows = await (
            await connection.execute(_SQL["put_back_fanouts"], {"ids": back}, binary=True)
        ).fetchall()
        await _record_fanouts(connection, rows, actor=request.actor)
    return answers


async def _record_fanouts(connection: Connection, rows: Sequence[Any], *, actor: str) -> None:
    if not rows:
        return
    # after the rows are locked: batch ids must grow along each stream
    now = await (await begin_batch(connection)).rows()
    fanouts = repeated_fanouts(rows, recorded_at=now.recorded_at)
    leaf_hashes = await append_fanouts(connection, fanouts, now=now)
    await write_batch(
        connection,
        batch_id=now.batch_id,
        recorded_at=now.recorded_at,
        leaf_hashes=leaf_hashes,
        writer=actor,
    )


async def verdicts(connection: Connection, ids: Collection[int]) -> dict[int, ReplayVerdict]:
    cursor = await connection.execute(_SQL["verdicts"], {"ids": list(ids)})
    return {
        dead_letter_id: ReplayVerdict(verdict)
        for dead_letter_id, verdict in await cursor.fetchall()
    }


async def replayed_by(connection: Connection, request: RepairRequest) -> int:
    """Return how many dead letters the run has replayed, whatever its process knows of it."""
    ((replayed,),) = await (
        await connection.execute(_SQL["replayed_by_run"], {"run_id": request.run_id})
    ).fetchall()
    return int(replayed)


async def obstacle_of(connection: Connection, dead_letter_id: int) -> Obstacle | None:
    """Return the obstacle to a replay, as far as is known without reading the message again."""
    row = await (
        await connection.execute(_SQL["obstacle"], {"dead_letter_id": dead_letter_id})
    ).fetchone()
    return Obstacle(row[0]) if row is not None and row[0] is not None else None


async def resolve(connection: Connection, request: RepairRequest, ids: Sequence[int]) -> int:
    """Resolve dead letters after reading their messages or events again.

    Return how many were still open.
    """
    return (
        await connection.execute(_SQL["resolve"], {**request.resolution, "ids": list(ids)})
    ).rowcount


async def discard(
    connection: Connection, request: RepairRequest, *, up_to: int, limit: int = DISCARDED_AT_ONCE
) -> int:
    """Discard up to `limit` open dead letters with ids of at most `up_to`. Return how many.

    Recorded in the same transaction. A discarded dead letter is not deleted: it is listed as
    such, with the reason.
    """
    parameters = {**request.parameters, **request.resolution, "up_to": up_to, "limit": limit}
    async with connection.transaction():
        discarded = (await connection.execute(_SQL["discard"], parameters)).rowcount
        # in the transaction that discards: no dead letter ends without an entry that says by whom
        if discarded:
            details = {
                "run": str(request.run_id),
                "why": request.why,
                **request.wanted.stated,
                "discarded": discarded,
            }
            await record_action(
                connection,
                actor=request.actor,
                verb="discard",
                target=request.target,
                details=details,
            )
    return discarded
