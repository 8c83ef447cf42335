"""Plan of a replay: its dead letters, and its effects by kind, cause and carrier."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID, uuid4

from psycopg import AsyncConnection
from pydantic import BaseModel, Field

from statesvc.database.queries import queries
from statesvc.repair.dead_letters.dead_letter import (
    CauseWord,
    DeadLetterFilter,
    DeadLetterKind,
    Obstacle,
    Way,
    way_of,
)
from statesvc.repair.renormalize.history_walk import Rereader

_SQL = queries("statesvc.repair.dead_letters", "dead_letters")
Connection = AsyncConnection[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairRequest:
    """A request to replay or to discard these dead letters, or those of a filter.

    `carriers`: those that this release can read.
    """

    wanted: DeadLetterFilter
    ids: tuple[int, ...] | None = None
    carriers: frozenset[str]
    actor: str
    why: str
    run_id: UUID

    @property
    def target(self) -> str:
        return (
            f"dead letter {self.ids[0]}"
            if self.ids is not None and len(self.ids) == 1
            else "dead letters"
        )

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            **self.wanted.parameters,
            "ids": None if self.ids is None else list(self.ids),
            "carriers": sorted(self.carriers),
        }

    @classmethod
    def of_one(
        cls, dead_letter_id: int, rereader: Rereader, *, actor: str, why: str
    ) -> "RepairRequest":
        """Request the repair of a single dead letter, as a run of its own."""
        carriers = frozenset(rereader.carriers)
        return cls(
            wanted=DeadLetterFilter(),
            ids=(dead_letter_id,),
            carriers=carriers,
            actor=actor,
            why=why,
            run_id=uuid4(),
        )

    @property
    def resolution(self) -> dict[str, Any]:
        return {"actor": self.actor, "why": self.why, "run_id": self.run_id}


@dataclass(frozen=True, slots=True)
class OpenDeadLetter:
    dead_letter_id: int
    kind: DeadLetterKind
    carrier_id: str
    message_id: UUID | None


@dataclass(frozen=True, slots=True)
class ObstacleCount:
    """Open dead letters of the same kind, cause and carrier with the same obstacle.

    None: without.
    """

    kind: DeadLetterKind
    cause: str
    carrier_id: str
    obstacle: Obstacle | None
    dead_letters: int


class ReplayPlanLine(BaseModel):
    """Open dead letters of the same kind, cause and carrier."""

    kind: DeadLetterKind
    cause: CauseWord
    carrier_id: str
    way: Annotated[Way, Field(description="What replaying them means.")]
    dead_letters: int
    replayable: Annotated[
        int, Field(description="Those without an obstacle, as far as is known beforehand.")
    ]
    obstacles: Annotated[
        dict[Obstacle, int], Field(description="What stands in the way of how many.")
    ]


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """The lines, the largest first.

    `up_to`: the newest dead letter of the moment; later burials are not part of the plan.
    """

    lines: Sequence[ReplayPlanLine]
    up_to: int

    @property
    def dead_letters(self) -> int:
        return sum(line.dead_letters for line in self.lines)

    @property
    def replayable(self) -> int:
        return sum(line.replayable for line in self.lines)

    @property
    def obstacles(self) -> Counter[Obstacle]:
        found: Counter[Obstacle] = Counter()
        for line in self.lines:
            found.update(line.obstacles)
        return found


def make_plan(
    counted: Iterable[ObstacleCount], *, up_to: int, carriers: frozenset[str]
) -> ReplayPlan:
    """Add the counts up. `carriers`: those that this release can read."""
    totals: Counter[tuple[DeadLetterKind, str, str]] = Counter()
    obstacles: dict[tuple[DeadLetterKind, str, str], Counter[Obstacle]] = {}
    for each in counted:
        key = (each.kind, each.cause, each.carrier_id)
        totals[key] += each.dead_letters
        found = obstacles.setdefault(key, Counter())
        obstacle = each.obstacle
        if obstacle is None and each.kind != "notification" and each.carrier_id not in carriers:
            obstacle = Obstacle.UNKNOWN_CARRIER
        if obstacle is not None:
            found[obstacle] += each.dead_letters
    lines = [
        ReplayPlanLine(
            kind=kind,
            cause=cause,
            carrier_id=carrier_id,
            way=way_of(kind, cause),
            dead_letters=total,
            replayable=total - obstacles[kind, cause, carrier_id].total(),
            obstacles=dict(obstacles[kind, cause, carrier_id]),
        )
        for (kind, cause, carrier_id), total in totals.items()
    ]
    return ReplayPlan(
        sorted(
            lines, key=lambda line: (-line.dead_letters, line.kind, line.cause, line.carrier_id)
        ),
        up_to,
    )


async def newest_dead_letter(connection: Connection) -> int:
    """Return its id: later burials are not part of a replay that begins now."""
    ((newest,),) = await (await connection.execute(_SQL["newest_dead_letter"])).fetchall()
    return int(newest)


async def plan_replay(connection: Connection, request: RepairRequest) -> ReplayPlan:
    # before the count: burials that come meanwhile are in neither plan nor run
    up_to = await newest_dead_letter(connection)
    cursor = await connection.execute(_SQL["plan"], {**request.parameters, "up_to": up_to})
    counted = [
        ObstacleCount(kind, cause, carrier_id, Obstacle(obstacle) if obstacle else None, count)
        for kind, cause, carrier_id, obstacle, count in await cursor.fetchall()
    ]
    return make_plan(counted, up_to=up_to, carriers=request.carriers)


async def next_dead_letters(
    connection: Connection,
    request: RepairRequest,
    ways: Collection[Way],
    *,
    after: int,
    up_to: int,
    limit: int,
) -> list[OpenDeadLetter]:
    """Return open dead letters above `after` with any of these ways, oldest first."""
    bounds = {"ways": [way.value for way in ways], "after": after, "up_to": up_to, "limit": limit}
    cursor = await connection.execute(_SQL["next_dead_letters"], {**request.parameters, **bounds})
    return [OpenDeadLetter(*row) for row in await cursor.fetchall()]


async def count_remaining(
    connection: Connection,
    request: RepairRequest,
    ways: Collection[Way],
    *,
    after: int,
    later_ways: Collection[Way],
    up_to: int,
) -> int:
    """Count the open dead letters left to a replay.

    Of these ways those above `after`, of the later ways all.
    """
    bounds = {
        "ways": [way.value for way in ways],
        "after": after,
        "later_ways": [way.value for way in later_ways],
        "up_to": up_to,
    }
    ((remaining,),) = await (
        await connection.execute(_SQL["count_remaining"], {**request.parameters, **bounds})
    ).fetchall()
    return int(remaining)
