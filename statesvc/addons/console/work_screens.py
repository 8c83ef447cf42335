"""Screens of work: what waits, who works on it, and what operators did."""

from collections.abc import Mapping
from typing import Any, Final

from statesvc.addons.console.screen import MenuGroup, PageRequest, Screen
from statesvc.http.keys.key_store import Scope

QUEUE: Final = "/console/queue"
WORKERS: Final = "/console/workers"
RECORD: Final = "/console/record"
NOTICES: Final = "/console/notices"
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


async def show_workers(visit: PageRequest) -> Mapping[str, Any]:
    """Show every process, those in trouble first."""
    found = await visit.call_api("GET /v1/workers")
    order = ("silent", "stopping", "foreign", "alive")
    workers = sorted(
        found["items"],
        key=lambda worker: (
            order.index(worker["state"]),
            worker["role"] or "",
            worker["worker_id"],
        ),
    )
    versions = sorted(
        {
            worker["version"]
            for worker in workers
            if worker["version"] is not None and worker["state"] == "alive"
        }
    )
    return {"workers": workers, "versions": versions, "rescues": found["rescues_last_hour"]}


async def show_record(visit: PageRequest) -> Mapping[str, Any]:
    """Show a page of actions, the newest first."""
    wanted = {name: visit.query(name) for name in ("actor", "verb", "target")}
    page = await visit.call_api("GET /v1/actions", **wanted, cursor=visit.query("cursor") or None)
    return {"wanted": wanted, "actions": page["items"], "next_cursor": page["next_cursor"]}


async def show_notices(visit: PageRequest) -> Mapping[str, Any]:
    """Show a page of notices, the newest first."""
    unseen = visit.query("all") != "1"
    page = await visit.call_api(
        "GET /v1/notices", unseen=unseen, cursor=visit.query("cursor") or None
    )
    return {"unseen": unseen, "notices": page["items"], "next_cursor": page["next_cursor"]}


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
        Screen(
            path=WORKERS,
            title="Workers",
            template="workers.html",
            scope=Scope.OPS,
            show=show_workers,
            menu="Workers",
            group=MenuGroup.OPERATORS,
        ),
        Screen(
            path=NOTICES,
            title="Notices",
            template="notices.html",
            scope=Scope.OPS,
            show=show_notices,
            menu="Notices",
            group=MenuGroup.OPERATORS,
        ),
        Screen(
            path=RECORD,
            title="Record",
            template="record.html",
            scope=Scope.OPS,
            show=show_record,
            menu="Record",
            group=MenuGroup.OPERATORS,
        ),
    ]
