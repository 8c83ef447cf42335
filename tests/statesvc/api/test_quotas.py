from typing import Any

from statesvc.database.wakeups.wakeup import READY_NOW


async def put(api: Any, carrier_id: str, **change: Any) -> Any:
    reply = await api.call("PUT", f"/v1/quotas/{carrier_id}", scopes="ops", json=change)
    assert reply.status == 200, reply.body
    return reply.body


async def test_a_quota_is_set_in_parts_and_listed(api: Any) -> None:
    first = await put(api, "ups", weight=0.5, in_flight_max=100, why="their gateway loops")
    assert (first["weight"], first["in_flight_max"], first["in_flight"]) == (0.5, 100, 0)
    assert (await put(api, "ups", weight=2))["in_flight_max"] == 100
    last = await put(api, "ups", in_flight_max=None, why="mended")
    assert (last["weight"], last["in_flight_max"], last["why"]) == (2, None, "mended")
    listed = (await api.get("/v1/quotas", scopes="ops")).body
    assert listed["items"] == [last]
    assert api.woken == [*READY_NOW] * 3
