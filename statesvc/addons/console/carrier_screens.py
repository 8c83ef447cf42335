"""Carriers: rates, silence, rollout, a candidate's differences, unknown codes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from events.carriers import CARRIERS
from events.carriers.carrier import Carrier
from statesvc.addons.console.carrier_board import BOARD, LEGEND, PUSHED, CarrierBoard, read_board
from statesvc.addons.console.charts import bars
from statesvc.addons.console.formats import heading, instant, link
from statesvc.addons.console.screen import Act, PageBlock, PageRequest, Picture, Redirect, Screen
from statesvc.api.queue_operations import get_quota
from statesvc.api.rollout_operations import get_rollout, list_rollout_diffs
from statesvc.database.pool import Connections
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem
from statesvc.http.views import Column, Details, Line, draw
from statesvc.queue.depths import read_depths
from statesvc.seams import is_on

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
                *draw(BOARD, {"items": rows}),
                Picture("", Markup(), LEGEND),
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
        chart = bars(line.hours, title=PUSHED, label_every=4, unit=" an hour")
        if chart:
            blocks.append(Picture("Webhooks of the last day", chart, LEGEND))
        if is_on("mappings"):
            codes = await visit.call_api(_UNMAPPED, **at)
            mappings = await visit.call_api(_MAPPINGS, **at)
            blocks += [heading("Unknown codes"), *draw(visit.calls.view(_UNMAPPED), codes)]
            if mappings["items"]:
                blocks.append(heading("Taught by operators"))
                blocks += draw(visit.calls.view(_MAPPINGS), mappings)
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
