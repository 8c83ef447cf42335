"""How a dead letter came to be: each attempt with worker, times, error and version, and the letters of earlier and later lives."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import class_row

from statesvc.database.queries import queries
from statesvc.repair.dead_letters.dead_letter import DeadLetter, Resolution, Way
from statesvc.repair.dead_letters.obstacle import Obstacle
from statesvc.repair.dead_letters.put_back import Verdict, obstacle_of, verdicts

_SQL = queries("statesvc.repair.dead_letters", "lives")

ATTEMPTS_MAX: Final = 100
LIVES_MAX: Final = 50


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try. Of a message: those that did not settle it. `error` holds a type, a status or an SQLSTATE, never a value."""

    number: int
    worker: str | None
    started_at: datetime | None
    ended_at: datetime
    outcome: str
    error: str | None
    normalizer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """Another letter of the same message or notification: it was replayed and buried again."""

    dead_letter_id: int
    created_at: datetime
    cause: str
    detail: str
    attempts: int
    resolved_at: datetime | None
    resolution: Resolution | None
    resolved_by: str | None
    why: str | None
    run_id: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """`obstacle`: what stands in the way of a replay, as far as can be told. `became`: of a replayed one, what came of it."""

    attempts: list[Attempt]
    other_lives: list[Life]
    obstacle: Obstacle | None
    became: Verdict | None


async def history_of(connection: AsyncConnection[Any], letter: DeadLetter) -> History:
    """Everything that is known about a letter beside the letter itself."""
    became = None
    if letter.resolution == "replayed" and letter.way in {Way.PUT_BACK, Way.SEND_AGAIN}:
        became = (await verdicts(connection, [letter.dead_letter_id])).get(letter.dead_letter_id)
    return History(
        attempts=await _attempts(connection, letter),
        other_lives=await _other_lives(connection, letter),
        obstacle=await obstacle_of(connection, letter.dead_letter_id),
        became=became,
    )


async def _attempts(connection: AsyncConnection[Any], letter: DeadLetter) -> list[Attempt]:
    match letter.way:
        case Way.PUT_BACK:
            cursor = await connection.execute(_SQL["attempts_at_message"], {"message_id": letter.message_id, "limit": ATTEMPTS_MAX})
        case Way.SEND_AGAIN:
            asked = await connection.execute(_SQL["notification_of"], {"dead_letter_id": letter.dead_letter_id})
            ((subscription_id, shipment_id, sequence),) = await asked.fetchall()
            key = {"subscription_id": subscription_id, "shipment_id": shipment_id, "sequence": sequence}
            cursor = await connection.execute(_SQL["attempts_at_notification"], {**key, "limit": ATTEMPTS_MAX})
        case Way.READ_AGAIN | Way.READ_CODE:
            return []
    return [Attempt(*row) for row in await cursor.fetchall()]


async def _other_lives(connection: AsyncConnection[Any], letter: DeadLetter) -> list[Life]:
    cursor = connection.cursor(row_factory=class_row(Life))
    bounds = {"dead_letter_id": letter.dead_letter_id, "limit": LIVES_MAX}
    match letter.way:
        case Way.PUT_BACK | Way.READ_AGAIN:
            await cursor.execute(_SQL["other_lives"], {**bounds, "message_id": letter.message_id})
        case Way.SEND_AGAIN:
            await cursor.execute(_SQL["other_lives_of_notification"], {**bounds, "webhook_id": letter.webhook_id})
        case Way.READ_CODE:
            return []
    return await cursor.fetchall()
