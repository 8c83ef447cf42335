from typing import Any

import pytest

from statesvc.database.wakeups.wakeup import READY_NOW


async def change_rollout(api: Any, carrier_id: str, **change: Any) -> Any:
    reply = await api.call("PUT", f"/v1/rollouts/{carrier_id}", scopes="ops", json=change)
    assert reply.status == 200, reply.body
    return reply.body


async def show(api: Any, carrier_id: str) -> Any:
    return (await api.get(f"/v1/rollouts/{carrier_id}", scopes="ops")).body


async def is_held(api: Any, carrier_id: str) -> bool:
    return bool(
        (await (await api.connection.execute("SELECT statesvc.held(%s)", [carrier_id])).fetchone())[
            0
        ]
    )


async def test_hold_and_release_take_effect(api: Any) -> None:
    held = await change_rollout(api, "ups", hold=True, why="they send garbage")
    assert (held["hold"], held["held"], held["why"]) == (True, True, "they send garbage")
    assert await is_held(api, "ups")
    assert not await is_held(api, "fedex")
    assert api.woken == []
    released = await change_rollout(api, "ups", hold=False, why="fixed")
    assert not await is_held(api, "ups")
    assert sorted(api.woken) == sorted(READY_NOW)
    assert released["changed_by"].startswith("key:")


@pytest.mark.parametrize("name", ["all", "*"])
async def test_all_carriers_are_held_at_once(api: Any, name: str) -> None:
    held = await change_rollout(api, name, hold=True)
    assert (held["carrier_id"], held["held"]) == ("*", True)
    other = await show(api, "fedex")
    assert (other["hold"], other["held"]) == (False, True)
    await change_rollout(api, name, hold=False)
    assert not await is_held(api, "fedex")
