"""Awaited numbers: registered with their carrier, and nothing was heard of them."""

from collections.abc import Mapping
from typing import Any, Final

from events.carriers import CARRIERS
from statesvc.addons.console.screen import MenuGroup, PageRequest, Screen
from statesvc.addons.console.shipment_screens import path_of
from statesvc.http.keys.key_store import Scope

PATH: Final = "/console/awaited"


async def show_awaited(visit: PageRequest) -> Mapping[str, Any]:
    """Show a page: those whose hours are over, the latest first, or those that are still waited for, the next due first."""
    is_waiting = visit.query("waiting") == "1"
    carrier_id = visit.query("carrier_id")
    page = await visit.call_api(
        "GET /v1/awaited-numbers",
        carrier_id=carrier_id or None,
        never_heard=not is_waiting,
        order="oldest" if is_waiting else "newest",
        cursor=visit.query("cursor") or None,
    )
    return {
        "is_waiting": is_waiting,
        "carrier_id": carrier_id,
        "carriers": sorted(CARRIERS),
        "lines": [
            (one, path_of({**one, "tracking_number": one["number"], "discriminator": ""}))
            for one in page["items"]
        ],
        "next_cursor": page["next_cursor"],
    }


def awaited_screen() -> Screen:
    return Screen(
        path=PATH,
        title="Awaited numbers",
        template="awaited.html",
        scope=Scope.READ,
        show=show_awaited,
        menu="Awaited numbers",
        group=MenuGroup.PARCELS,
    )
