"""Carriers: rates, silence, rollout, a candidate's differences, unknown codes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from events.carriers import CARRIERS
from events.carriers.carrier import Carrier
from statesvc.addons.console.carrier_board import CarrierLine, read_board
from statesvc.addons.console.charts import Bar, bars
from statesvc.addons.console.screen import PageRequest, Redirect, Screen
from statesvc.api.queue_operations import get_quota
from statesvc.api.rollout_operations import get_rollout, list_rollout_diffs
from statesvc.database.pool import Connections
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem
from statesvc.http.views import draw
from statesvc.reading.rollout_store import ALL
from statesvc.seams import is_on

LIST: Final = "/console/carriers"
ONE: Final = LIST + "/{carrier_id}"
_DIFFERENCES: Final = 20
_UNMAPPED: Final = "GET /v1/unmapped-codes"
_MAPPINGS: Final = "GET /v1/carriers/{carrier_id}/mappings"
_PUSHED: Final = "Webhooks of the last day, hour by hour: new, repeated, refused"


@dataclass(frozen=True, slots=True)
class CarrierScreens:
    pool: Connections
    carriers: Mapping[str, Carrier]

    async def show_list(self, _visit: PageRequest) -> Mapping[str, Any]:
        """Show those that push, trouble first; the others by name."""
        async with self.pool.connection() as connection:
            board = await read_board(connection, sorted(self.carriers))
        lines = [(line, _chart(line, width=96)) for line in board.lines if not line.is_quiet]
        quiet = sorted(line.carrier_id for line in board.lines if line.is_quiet)
        return {"lines": lines, "quiet": quiet, "all_held": board.all_held, "all": ALL}

    async def show_one(self, visit: PageRequest) -> Mapping[str, Any] | Redirect:
        """Show a carrier, with its candidate's differences and its codes."""
        if visit.path("carrier_id") == "all":
            return Redirect(LIST)
        carrier = self._carrier(visit)
        carrier_id = carrier.carrier_id
        line = await self._line(carrier_id)
        rollout = await visit.call_api("GET /v1/rollouts/{carrier_id}", carrier_id=carrier_id)
        blocks = draw(get_rollout.view, rollout)
        blocks += draw(
            get_quota.view,
            await visit.call_api("GET /v1/quotas/{carrier_id}", carrier_id=carrier_id),
        )
        if rollout["candidate"] is not None:
            diffs = await visit.call_api(
                "GET /v1/rollouts/{carrier_id}/diffs", carrier_id=carrier_id, limit=_DIFFERENCES
            )
            blocks += draw(list_rollout_diffs.view, diffs)
        return {
            "title": carrier.name,
            "carrier": carrier,
            "line": line,
            "chart": _chart(line, label_every=4),
            "rollout": rollout,
            "blocks": blocks,
            "has_codes": is_on("mappings"),
            **(await _codes(visit, carrier_id) if is_on("mappings") else {}),
        }

    async def _line(self, carrier_id: str) -> CarrierLine:
        async with self.pool.connection() as connection:
            return (await read_board(connection, [carrier_id])).lines[0]

    def _carrier(self, visit: PageRequest) -> Carrier:
        carrier = self.carriers.get(visit.path("carrier_id"))
        if carrier is None:
            raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; the list of carriers has them")
        return carrier


async def _codes(visit: PageRequest, carrier_id: str) -> Mapping[str, Any]:
    found = {}
    for name, call in (("codes", _UNMAPPED), ("mappings", _MAPPINGS)):
        page = await visit.call_api(call, carrier_id=carrier_id)
        found[name] = draw(visit.calls.view(call), page) if page["items"] or name == "codes" else []
    return found


def _chart(line: CarrierLine, *, width: int | None = None, label_every: int = 0) -> Any:  # noqa: ANN401 - markup
    return bars(
        [Bar(f"{hour.begins:%H:%M}", hour.counts) for hour in line.hours],
        title=_PUSHED,
        width=width,
        height=22 if width else 0,
        label_every=label_every,
        unit=None if width else " an hour",
    )


def carrier_pages(pool: Connections, carriers: Mapping[str, Carrier] = CARRIERS) -> list[Screen]:
    pages = CarrierScreens(pool, carriers)
    return [
        Screen(
            path=LIST,
            title="Carriers",
            template="carriers.html",
            scope=Scope.OPS,
            show=pages.show_list,
            menu="Carriers",
        ),
        Screen(
            path=ONE,
            title="Carrier",
            template="carrier.html",
            scope=Scope.OPS,
            show=pages.show_one,
            section=LIST,
        ),
    ]
