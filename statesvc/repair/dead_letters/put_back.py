"""The statements of a replay: plan, the next letters, putting back, verdicts. Each is safe to repeat."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.repair.dead_letters.dead_letter import DeadLetterKind, Filter, Way
from statesvc.repair.dead_letters.obstacle import Obstacle
from statesvc.repair.dead_letters.replay_plan import Counted, Plan, make_plan

_SQL = queries("statesvc.repair.dead_letters", "put_back")
_QUEUED: Final = (Way.PUT_BACK, Way.SEND_AGAIN)
Connection = AsyncConnection[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What somebody asked for: these letters, or those of a filter. `carriers`: those that this release can read."""

    wanted: Filter
    ids: tuple[int, ...] | None = None
    carriers: frozenset[str]
    actor: str
    why: str
    run_id: UUID

    @property
    def target(self) -> str:
        """What the log says was acted on."""
        return f"dead letter {self.ids[0]}" if self.ids is not None and len(self.ids) == 1 else "dead letters"

    @property
    def parameters(self) -> dict[str, Any]:
        """For the statements."""
        return {**self.wanted.parameters, "ids": None if self.ids is None else list(self.ids), "carriers": sorted(self.carriers)}


@dataclass(frozen=True, slots=True)
class Open:
    """A letter that waits to be replayed."""

    dead_letter_id: int
    kind: DeadLetterKind
    carrier_id: str
    message_id: UUID | None


class Verdict(StrEnum):
    """What became of a letter that was put back."""

    WAITING = "waiting"
    SETTLED = "settled"
    BURIED = "buried"
    FAILING = "failing"


async def horizon(connection: Connection) -> int:
    """The newest dead letter: what is buried later is no part of a replay that begins now."""
    ((newest,),) = await (await connection.execute(_SQL["horizon"])).fetchall()
    return int(newest)


async def plan(connection: Connection, order: Order) -> Plan:
    """What a replay of all that is there now would do."""
    up_to = await horizon(connection)
    cursor = await connection.execute(_SQL["plan"], {**order.parameters, "up_to": up_to})
    counted = [
        Counted(kind, cause, carrier_id, Obstacle(obstacle) if obstacle else None, letters)
        for kind, cause, carrier_id, obstacle, letters in await cursor.fetchall()
    ]
    return make_plan(counted, up_to=up_to, carriers=order.carriers)


async def next_letters(
    connection: Connection, order: Order, ways: Iterable[Way] = _QUEUED, *, after: int, up_to: int, limit: int
) -> list[Open]:
    """Open letters above `after`, oldest first."""
    cursor = await connection.execute(
        _SQL["next_letters"], {**order.parameters, "ways": [way.value for way in ways], "after": after, "up_to": up_to, "limit": limit}
    )
    return [Open(*row) for row in await cursor.fetchall()]


async def put_back(connection: Connection, order: Order, ids: Sequence[int]) -> dict[int, Obstacle | None]:
    """Puts messages and notifications back, each once whoever else does it too. For each: what stood in the way; None: it is back."""
    parameters = {"ids": list(ids), "actor": order.actor, "why": order.why, "run_id": order.run_id}
    cursor = await connection.execute(_SQL["put_back"], parameters)
    return {letter_id: Obstacle(obstacle) if obstacle else None for letter_id, obstacle in await cursor.fetchall()}


async def verdicts(connection: Connection, ids: Collection[int]) -> dict[int, Verdict]:
    """What became of letters that were put back."""
    cursor = await connection.execute(_SQL["verdicts"], {"ids": list(ids)})
    return {letter_id: Verdict(verdict) for letter_id, verdict in await cursor.fetchall()}


async def replayed_by(connection: Connection, order: Order) -> int:
    """How many letters the run has replayed, whatever its process knows of it."""
    ((replayed,),) = await (await connection.execute(_SQL["replayed_by_run"], {"run_id": order.run_id})).fetchall()
    return int(replayed)


async def obstacle_of(connection: Connection, dead_letter_id: int) -> Obstacle | None:
    """What stands in the way of replaying a letter, as far as can be told without reading it again."""
    row = await (await connection.execute(_SQL["obstacle"], {"dead_letter_id": dead_letter_id})).fetchone()
    return Obstacle(row[0]) if row is not None and row[0] is not None else None


async def resolve(connection: Connection, order: Order, ids: Sequence[int]) -> int:
    """Resolves letters whose messages or events were read again. Answers how many were still open."""
    parameters = {"ids": list(ids), "actor": order.actor, "why": order.why, "run_id": order.run_id}
    return (await connection.execute(_SQL["resolve"], parameters)).rowcount
