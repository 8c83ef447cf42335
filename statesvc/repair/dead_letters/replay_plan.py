"""What a replay would do, by kind, cause and carrier, before it does anything. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from statesvc.repair.dead_letters.dead_letter import DeadLetterKind, Way, way_of
from statesvc.repair.dead_letters.obstacle import Obstacle


@dataclass(frozen=True, slots=True)
class Counted:
    """So many open letters of one kind, cause and carrier that the same thing stands in the way of; None: nothing does."""

    kind: DeadLetterKind
    cause: str
    carrier_id: str
    obstacle: Obstacle | None
    letters: int


@dataclass(slots=True)
class Line:
    """Letters of one kind, cause and carrier."""

    kind: DeadLetterKind
    cause: str
    carrier_id: str
    letters: int = 0
    obstacles: Counter[Obstacle] = field(default_factory=Counter)

    @property
    def way(self) -> Way:
        """What replaying them means."""
        return way_of(self.kind, self.cause)

    @property
    def replayable(self) -> int:
        """How many of them nothing stands in the way of, as far as can be told beforehand."""
        return self.letters - self.obstacles.total()


@dataclass(frozen=True, slots=True)
class Plan:
    """The lines, the largest first. `up_to`: the newest letter that was there; what is buried later is no part of it."""

    lines: list[Line]
    up_to: int

    @property
    def letters(self) -> int:
        """How many are meant."""
        return sum(line.letters for line in self.lines)

    @property
    def replayable(self) -> int:
        """How many can be replayed."""
        return sum(line.replayable for line in self.lines)

    @property
    def obstacles(self) -> Counter[Obstacle]:
        """What stands in the way of how many."""
        found: Counter[Obstacle] = Counter()
        for line in self.lines:
            found += line.obstacles
        return found


def make_plan(counted: Iterable[Counted], *, up_to: int, carriers: frozenset[str]) -> Plan:
    """`carriers`: those that this release can read."""
    lines: dict[tuple[DeadLetterKind, str, str], Line] = {}
    for each in counted:
        line = lines.setdefault((each.kind, each.cause, each.carrier_id), Line(each.kind, each.cause, each.carrier_id))
        line.letters += each.letters
        obstacle = each.obstacle
        if obstacle is None and each.kind != "notification" and each.carrier_id not in carriers:
            obstacle = Obstacle.UNKNOWN_CARRIER
        if obstacle is not None:
            line.obstacles[obstacle] += each.letters
    return Plan(sorted(lines.values(), key=lambda line: (-line.letters, line.kind, line.cause, line.carrier_id)), up_to)
