"""Dials of a carrier: its hold, and its quota."""

from typing import Any

import orjson
import pytest

from statesvc.database.wakeups.wakeup import READY_NOW


async def put(api: Any, path: str, **change: Any) -> Any:
    reply = await api.call("PUT", f"/v1/{path}", scopes="ops", json=change)
    assert reply.status == 200, reply.body
    return reply.body


async def is_held(api: Any, carrier_id: str) -> bool:
    ((held,),) = await api.rows("SELECT statesvc.held(%s)", [carrier_id])
    return bool(held)


async def test_hold_and_release_take_effect(api: Any) -> None:
    held = await put(api, "rollouts/ups", hold=True, why="they send garbage")
    assert (held["hold"], held["held"], held["why"]) == (True, True, "they send garbage")
    assert await is_held(api, "ups")
    assert not await is_held(api, "fedex")
    assert api.woken == []
    released = await put(api, "rollouts/ups", hold=False, why="fixed")
    assert not await is_held(api, "ups")
    assert sorted(api.woken) == sorted(READY_NOW)
    assert released["changed_by"].startswith("key:")


@pytest.mark.parametrize("name", ["all", "*"])
async def test_all_carriers_are_held_at_once(api: Any, name: str) -> None:
    held = await put(api, f"rollouts/{name}", hold=True)
    assert (held["carrier_id"], held["held"]) == ("*", True)
    other = (await api.get("/v1/rollouts/fedex", scopes="ops")).body
    assert (other["hold"], other["held"]) == (False, True)
    await put(api, f"rollouts/{name}", hold=False)
    assert not await is_held(api, "fedex")


async def test_a_quota_is_set_in_parts_and_listed(api: Any) -> None:
    first = await put(api, "quotas/ups", weight=0.5, in_flight_max=100, why="their gateway loops")
    assert (first["weight"], first["in_flight_max"], first["in_flight"]) == (0.5, 100, 0)
    assert (await put(api, "quotas/ups", weight=2))["in_flight_max"] == 100
    last = await put(api, "quotas/ups", in_flight_max=None, why="mended")
    assert (last["weight"], last["in_flight_max"], last["why"]) == (2, None, "mended")
    assert (await api.get("/v1/quotas", scopes="ops")).body["items"] == [last]
    assert api.woken == [*READY_NOW] * 3
    ((verb, canonical), *_) = await api.rows(
        "SELECT verb, canonical FROM statesvc.action WHERE target = 'carrier ups' ORDER BY batch_id"
    )
    said = {"in_flight_max": 100, "weight": "0.5", "why": "their gateway loops"}
    assert (verb, orjson.loads(canonical)["details"]) == ("set_quota", said)
