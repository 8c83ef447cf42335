"""Carriers: pushes of a day, silence, backlog, rollout, differences of a candidate, codes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from markupsafe import Markup
from psycopg import AsyncConnection

from events.carriers import CARRIERS
from events.carriers.carrier import Carrier
from statesvc.addons.console.charts import Bar, bars
from statesvc.addons.console.formats import chip, heading, instant, link, percent, seconds
from statesvc.addons.console.screen import Act, PageBlock, PageRequest, Picture, Redirect, Screen
from statesvc.api.queue_operations import get_quota
from statesvc.api.rollout_operations import get_rollout, list_rollout_diffs
from statesvc.api.service_status import READY_SECONDS_MAX
from statesvc.database.pool import Connections
from statesvc.database.queries import queries
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem
from statesvc.http.views import Column, Details, Line, Table, counted, draw
from statesvc.queue.depths import CarrierDepths, read_depths
from statesvc.reading.rollout_store import ALL, Rollout, list_rollouts
from statesvc.seams import is_on

_SQL: Final = queries("statesvc.addons.console", "carrier_screens")
_HOURS: Final = 24
_LEGEND: Final = (("first", "new"), ("second", "repeated"), ("third", "refused"))
_PUSHED: Final = "Webhooks of the last day, hour by hour: new, repeated, refused"
_COUNT_MAX: Final = 100_000
_CARRIER: Final = Column("carrier_id", "Carrier", link="/console/carriers/{carrier_id}")
_DAY: Final = (_CARRIER, Column("chart", "Last day"), "pushed")
_NOW: Final = (Column("silent", "Silent for"), "waiting", Column("needs", "To do"))
_EMPTY: Final = "No carrier has pushed anything within a day."
_BOARD: Final = Table(
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
            "chart": bars(self.hours, title=_PUSHED, width=96, height=22),
            "pushed": self.pushed,
            "repeated": percent(repeated),
            "refused": self.refused,
            "silent": seconds(self.silent_seconds),
            "heard": heard if self.last_at else "not within a day",
            "oldest": seconds(lane.get("oldest_ready_seconds")),
            "waiting": _waiting(lane, is_late=self.is_late),
            "needs": Markup("<span>{}</span>").format(Markup(", ").join(needs)) if needs else "",
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
    first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=_HOURS - 1)
    begins = [first + timedelta(hours=place) for place in range(_HOURS)]
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


LIST: Final = "/console/carriers"
ONE: Final = LIST + "/{carrier_id}"
_DIFFERENCES: Final = 20
_UNMAPPED: Final = "GET /v1/unmapped-codes"
_MAPPINGS: Final = "GET /v1/carriers/{carrier_id}/mappings"
_FACTS: Final = Details(
    Column("{pushed}, {repeated} repeated", "Pushed within a day"),
    "refused",
    Column("heard", "Last heard"),
    "ready",
    Column("leased", "In hand"),
    "scheduled",
    "held",
    Column("oldest", "Oldest ready"),
    Column("needs", "To do"),
)


@dataclass(frozen=True, slots=True)
class CarrierScreens:
    pool: Connections
    carriers: Mapping[str, Carrier]

    async def show_list(self, _visit: PageRequest) -> Mapping[str, Any]:
        """Show those that push, trouble first; the others by name."""
        board = await self._board(*sorted(self.carriers))
        quiet = sorted(line.carrier_id for line in board.lines if line.is_quiet)
        rows = [line.row() for line in board.lines if not line.is_quiet]
        others = Markup(
            "<details><summary>{} carriers without anything to see</summary><p>{}</p></details>"
        )
        links = Markup(" ").join(link(f"{LIST}/{name}", name) for name in quiet)
        return {
            "is_live": True,
            "acts": [
                Act(f"{LIST}/all/release", "Release every carrier", Scope.OPS, is_main=True)
                if board.all_held
                else Act(f"{LIST}/all/hold", "Hold every carrier", Scope.OPS)
            ],
            "blocks": [
                *([Line("Every carrier is on hold.", is_refusal=True)] if board.all_held else ()),
                *draw(_BOARD, {"items": rows}),
                Picture("", Markup(), _LEGEND),
                others.format(len(quiet), links),
            ],
        }

    async def show_one(self, visit: PageRequest) -> Mapping[str, Any] | Redirect:
        """Show a carrier, with its candidate's differences and its codes."""
        if (carrier_id := visit.path("carrier_id")) == "all":
            return Redirect(LIST)
        if carrier_id not in self.carriers:
            raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; the list of carriers has them")
        line = (await self._board(carrier_id)).lines[0]
        at = {"carrier_id": carrier_id}
        rollout = await visit.call_api("GET /v1/rollouts/{carrier_id}", **at)
        quota = await visit.call_api("GET /v1/quotas/{carrier_id}", **at)
        blocks: list[PageBlock] = [*_held(rollout), *draw(_FACTS, line.row())]
        chart = bars(line.hours, title=_PUSHED, label_every=4, unit=" an hour")
        if chart:
            blocks.append(Picture("Webhooks of the last day", chart, _LEGEND))
        if is_on("mappings"):
            codes = await visit.call_api(_UNMAPPED, **at)
            mappings = await visit.call_api(_MAPPINGS, **at)
            blocks += [
                heading("Unknown codes"),
                *draw(visit.calls.operation(_UNMAPPED).view, codes),
            ]
            if mappings["items"]:
                blocks.append(heading("Taught by operators"))
                blocks += draw(visit.calls.operation(_MAPPINGS).view, mappings)
        blocks += [heading("How it is read"), *draw(get_rollout.view, rollout)]
        if rollout["candidate"] is not None:
            diffs = await visit.call_api(
                "GET /v1/rollouts/{carrier_id}/diffs", **at, limit=_DIFFERENCES
            )
            blocks += draw(list_rollout_diffs.view, diffs)
        return {
            "title": self.carriers[carrier_id].name,
            "is_live": True,
            "crumb": (LIST, "Carriers", carrier_id),
            "acts": _acts(f"{LIST}/{carrier_id}", is_held=rollout["hold"]),
            "blocks": [*blocks, *draw(get_quota.view, quota)],
        }

    async def _board(self, *carrier_ids: str) -> CarrierBoard:
        async with self.pool.connection() as connection:
            depths = (await read_depths(connection))["carriers"]
            return await read_board(connection, carrier_ids, depths)


def _held(rollout: Mapping[str, Any]) -> Iterator[Line]:
    if rollout["hold"]:
        said = Markup("On hold: messages are stored, and none is processed. {}, {}: {}").format(
            rollout["changed_by"], instant(rollout["changed_at"]), rollout["why"]
        )
        yield Line(said, is_refusal=True)
    elif rollout["held"]:
        yield Line("Every carrier is on hold: messages are stored, and none is processed.", True)


def _acts(path: str, *, is_held: bool) -> list[Act]:
    entries = [
        ("release", "Release") if is_held else ("hold", "Hold"),
        ("rollout", "Change the rollout"),
        ("quota", "Limit this carrier"),
        *([("teach", "Map a code")] if is_on("mappings") else ()),
    ]
    return [Act(f"{path}/{end}", words, Scope.OPS) for end, words in entries]


def carrier_pages(pool: Connections, carriers: Mapping[str, Carrier] = CARRIERS) -> list[Screen]:
    pages = CarrierScreens(pool, carriers)
    about: dict[str, Any] = {"scope": Scope.OPS, "section": LIST}
    return [
        Screen(path=LIST, title="Carriers", show=pages.show_list, menu="Carriers", **about),
        Screen(path=ONE, title="Carrier", show=pages.show_one, **about),
    ]
