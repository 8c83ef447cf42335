"""Screens of work: backlog, workers, and operator actions."""

from collections.abc import Mapping
from typing import Any, Final

from statesvc.addons.console.screen import PageRequest, Screen
from statesvc.http.keys.key_store import Scope

QUEUE: Final = "/console/queue"
_STATES: Final = ("ready", "leased", "scheduled", "held")


async def show_queue(visit: PageRequest) -> Mapping[str, Any]:
    """Show lanes with something in them, the fullest first; the way out."""
    depths = await visit.call_api("GET /v1/queue")
    lanes = [
        (carrier_id, lane, sum(lane[state] for state in _STATES))
        for carrier_id, lane in depths["carriers"].items()
    ]
    lanes = sorted((each for each in lanes if each[2]), key=lambda each: -each[2])
    return {
        "lanes": lanes,
        "most": max((each[2] for each in lanes), default=0),
        "outbox": depths["outbox"],
        "capped": depths["counts_capped"],
    }


def work_pages() -> list[Screen]:
    return [
        Screen(
            path=QUEUE,
            title="Queue",
            template="queue.html",
            scope=Scope.OPS,
            show=show_queue,
            menu="Queue",
        ),
    ]
