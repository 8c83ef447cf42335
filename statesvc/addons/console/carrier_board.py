"""Board of carriers: pushes of a day, silence, backlog and rollout of each."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.queue.depths import CarrierDepths, read_depths
from statesvc.reading.rollout_store import ALL, Rollout, list_rollouts

_SQL: Final = queries("statesvc.addons.console", "carrier_board")
HOURS: Final = 24
_COUNT_MAX: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    begins: datetime
    accepted: int = 0
    duplicates: int = 0
    refused: int = 0

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.accepted, self.duplicates, self.refused


@dataclass(slots=True, kw_only=True)
class CarrierLine:
    """A carrier.

    `hours`: the last day, the oldest first; `silent_seconds` None: no push within it.
    """

    carrier_id: str
    rollout: Rollout
    is_held: bool
    hours: Sequence[Hour] = ()
    last_at: datetime | None = None
    silent_seconds: float | None = None
    depths: CarrierDepths | None = None
    unknown_codes: int = 0
    dead_letters: int = 0

    @property
    def pushed(self) -> int:
        """New and repeated within the day."""
        return sum(hour.accepted + hour.duplicates for hour in self.hours)

    @property
    def refused(self) -> int:
        """Refusals within the day."""
        return sum(hour.refused for hour in self.hours)

    @property
    def repeated_share(self) -> float | None:
        """Share of repeated pushes; None without pushes."""
        return sum(hour.duplicates for hour in self.hours) / self.pushed if self.pushed else None

    @property
    def weight(self) -> tuple[bool, int, int]:
        """Sort key: trouble first, then the most pushes."""
        return (
            not (self.is_held or self.dead_letters or self.unknown_codes),
            -self.pushed,
            -self.refused,
        )

    @property
    def is_quiet(self) -> bool:
        """True if the board has no news of it."""
        lane = self.depths
        waiting = lane is not None and (
            lane["ready"] or lane["leased"] or lane["scheduled"] or lane["held"]
        )
        turned = self.rollout.hold or self.rollout.candidate is not None
        return not (
            waiting
            or turned
            or self.pushed
            or self.refused
            or self.unknown_codes
            or self.dead_letters
        )


@dataclass(frozen=True, slots=True)
class CarrierBoard:
    """All of them. `all_held`: the kill switch of every carrier is on."""

    lines: Sequence[CarrierLine]
    all_held: bool


@dataclass(slots=True)
class _Found:
    hours: dict[datetime, Hour] = field(default_factory=dict)
    last_at: datetime | None = None


async def read_board(connection: AsyncConnection[Any], carrier_ids: Sequence[str]) -> CarrierBoard:
    """Read the board of these carriers, trouble first."""
    rows = await (await connection.execute(_SQL["now"])).fetchall()
    now: datetime = rows[0][0]
    one = carrier_ids[0] if len(carrier_ids) == 1 else None
    found: dict[str, _Found] = {}
    for carrier_id, hour, accepted, duplicates, refused, last_at in await (
        await connection.execute(_SQL["hours"], {"carrier_id": one})
    ).fetchall():
        of = found.setdefault(carrier_id, _Found())
        of.hours[hour] = Hour(
            begins=hour, accepted=accepted, duplicates=duplicates, refused=refused
        )
        of.last_at = max(filter(None, (of.last_at, last_at)), default=None)
    rollouts = {rollout.carrier_id: rollout for rollout in await list_rollouts(connection)}
    depths = (await read_depths(connection))["carriers"]
    waiting = {
        row[0]: row[1:]
        for row in await (
            await connection.execute(_SQL["open_dead_letters"], {"count_max": _COUNT_MAX})
        ).fetchall()
    }
    all_held = ALL in rollouts and rollouts[ALL].hold
    first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
    begins = [first + timedelta(hours=place) for place in range(HOURS)]
    lines = []
    for carrier_id in carrier_ids:
        of = found.get(carrier_id, _Found())
        rollout = rollouts.get(carrier_id, Rollout(carrier_id=carrier_id))
        unknown_codes, dead_letters = waiting.get(carrier_id, (0, 0))
        lines.append(
            CarrierLine(
                carrier_id=carrier_id,
                rollout=rollout,
                is_held=rollout.hold or all_held,
                hours=[of.hours.get(hour, Hour(begins=hour)) for hour in begins],
                last_at=of.last_at,
                silent_seconds=None if of.last_at is None else (now - of.last_at).total_seconds(),
                depths=depths.get(carrier_id),
                unknown_codes=unknown_codes,
                dead_letters=dead_letters,
            )
        )
    return CarrierBoard(sorted(lines, key=lambda line: line.weight), all_held)
