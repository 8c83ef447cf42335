"""Board of carriers: pushes of a day, silence, backlog and rollout of each, as rows of tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from markupsafe import Markup
from psycopg import AsyncConnection

from statesvc.addons.console.charts import Bar, bars
from statesvc.addons.console.formats import chip, instant, link, percent, seconds
from statesvc.api.service_status import READY_SECONDS_MAX
from statesvc.database.queries import queries
from statesvc.http.views import Column, Table, counted
from statesvc.queue.depths import CarrierDepths
from statesvc.reading.rollout_store import ALL, Rollout, list_rollouts

_SQL: Final = queries("statesvc.addons.console", "carrier_board")
HOURS: Final = 24
LEGEND: Final = (("first", "new"), ("second", "repeated"), ("third", "refused"))
PUSHED: Final = "Webhooks of the last day, hour by hour: new, repeated, refused"
_COUNT_MAX: Final = 100_000
_CARRIER: Final = Column("carrier_id", "Carrier", link="/console/carriers/{carrier_id}")
_DAY: Final = (_CARRIER, Column("chart", "Last day"), "pushed")
_NOW: Final = (Column("silent", "Silent for"), "waiting", Column("needs", "To do"))
_EMPTY: Final = "No carrier has pushed anything within a day."
BOARD: Final = Table(
    *_DAY,
    Column("repeated", wide=True),
    "refused",
    *_NOW,
    Column("rollout", wide=True),
    empty=_EMPTY,
)
OVERVIEW: Final = Table(*_DAY, *_NOW, title="Carriers", empty=_EMPTY)


@dataclass(slots=True, kw_only=True)
class CarrierLine:
    """A carrier.

    `hours`: new, repeated and refused pushes of the last day, the oldest first; `silent_seconds`
    None: no push within it.
    """

    carrier_id: str
    rollout: Rollout
    is_held: bool
    hours: Sequence[Bar]
    last_at: datetime | None
    silent_seconds: float | None
    depths: CarrierDepths | None
    unknown_codes: int
    dead_letters: int

    @property
    def pushed(self) -> int:
        """New and repeated within the day."""
        return int(sum(hour.parts[0] + hour.parts[1] for hour in self.hours))

    @property
    def refused(self) -> int:
        return int(sum(hour.parts[2] for hour in self.hours))

    @property
    def is_late(self) -> bool:
        """True if the oldest has waited too long; held messages wait for a human."""
        lane = self.depths
        return lane is not None and (lane["oldest_ready_seconds"] or 0) > READY_SECONDS_MAX

    @property
    def weight(self) -> tuple[bool, bool, int, int]:
        """Sort key: trouble first, then the most pushes."""
        needed = self.is_held or self.dead_letters or self.unknown_codes
        return not self.is_late, not needed, -self.pushed, -self.refused

    @property
    def is_quiet(self) -> bool:
        """True if the board has no news of it."""
        turned = self.rollout.hold or self.rollout.candidate is not None
        backlog = self.dead_letters or self.unknown_codes or any((self.depths or {}).values())
        return not (backlog or turned or self.pushed or self.refused)

    def row(self) -> dict[str, Any]:
        """Return the members of its row, and of its page."""
        lane: Mapping[str, Any] = self.depths or {}
        repeated = sum(hour.parts[1] for hour in self.hours) / self.pushed if self.pushed else None
        candidate, letters = self.rollout.candidate, "/console/dead-letters?carrier_id="
        codes = f"/console/carriers/{self.carrier_id}#unknown-codes"
        heard = Markup("{}, {} ago").format(instant(self.last_at), seconds(self.silent_seconds))
        needs = [chip("on hold", "warn")] * self.is_held
        if self.dead_letters:
            words = counted(self.dead_letters, "dead letter")
            needs.append(link(letters + self.carrier_id, words, "warn"))
        if self.unknown_codes:
            needs.append(link(codes, counted(self.unknown_codes, "unknown code"), "warn"))
        return {
            **{name: lane.get(name) or None for name in ("ready", "leased", "scheduled", "held")},
            "carrier_id": self.carrier_id,
            "chart": bars(self.hours, title=PUSHED, width=96, height=22),
            "pushed": self.pushed,
            "repeated": percent(repeated),
            "refused": self.refused,
            "silent": seconds(self.silent_seconds),
            "heard": heard if self.last_at else "not within a day",
            "oldest": seconds(lane.get("oldest_ready_seconds")),
            "waiting": _waiting(lane, is_late=self.is_late),
            "needs": Markup(" ").join(needs),
            "rollout": f"{candidate}: {self.rollout.percent} %" + ", shadow" * self.rollout.shadow
            if candidate
            else "none",
        }


def _waiting(lane: Mapping[str, Any], *, is_late: bool) -> str | int:
    words = ", ".join(
        f"{lane[state]:,} {state}, {seconds(lane[f'oldest_{state}_seconds'])}"
        for state in ("ready", "held")
        if lane.get(state)
    )
    return chip(words, "bad") if is_late else words or 0


@dataclass(frozen=True, slots=True)
class CarrierBoard:
    """All of them. `all_held`: the kill switch of every carrier is on; `now`: the database's."""

    lines: Sequence[CarrierLine]
    all_held: bool
    now: datetime


async def read_board(
    connection: AsyncConnection[Any],
    carrier_ids: Sequence[str],
    depths: Mapping[str, CarrierDepths],
) -> CarrierBoard:
    """Read the board of these carriers, trouble first."""
    ((now,),) = await (await connection.execute(_SQL["now"])).fetchall()
    one = carrier_ids[0] if len(carrier_ids) == 1 else None
    counts: dict[tuple[str, datetime], tuple[int, ...]] = {}
    last: dict[str, datetime] = {}
    for carrier_id, hour, *parts, last_at in await (
        await connection.execute(_SQL["hours"], {"carrier_id": one})
    ).fetchall():
        counts[carrier_id, hour] = tuple(parts)
        last[carrier_id] = max(last_at, last.get(carrier_id, last_at))
    rollouts = {rollout.carrier_id: rollout for rollout in await list_rollouts(connection)}
    found = await connection.execute(_SQL["open_dead_letters"], {"count_max": _COUNT_MAX})
    waiting = {row[0]: row[1:] for row in await found.fetchall()}
    all_held = ALL in rollouts and rollouts[ALL].hold
    first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
    begins = [first + timedelta(hours=place) for place in range(HOURS)]
    lines = []
    for carrier_id in carrier_ids:
        rollout = rollouts.get(carrier_id, Rollout(carrier_id=carrier_id))
        unknown_codes, dead_letters = waiting.get(carrier_id, (0, 0))
        last_at = last.get(carrier_id)
        lines.append(
            CarrierLine(
                carrier_id=carrier_id,
                rollout=rollout,
                is_held=rollout.hold or all_held,
                hours=[
                    Bar(f"{hour:%H:%M}", counts.get((carrier_id, hour), (0, 0, 0)))
                    for hour in begins
                ],
                last_at=last_at,
                silent_seconds=None if last_at is None else (now - last_at).total_seconds(),
                depths=depths.get(carrier_id),
                unknown_codes=unknown_codes,
                dead_letters=dead_letters,
            )
        )
    return CarrierBoard(sorted(lines, key=lambda line: line.weight), all_held, now)
