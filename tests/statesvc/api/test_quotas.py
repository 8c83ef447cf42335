from typing import Any

import orjson

from statesvc.database.wakeups.wakeup import READY_NOW


async def put(api: Any, carrier_id: str, **change: Any) -> Any:
    reply = await api.call("PUT", f"/v1/quotas/{carrier_id}", scopes="ops", json=change)
    assert reply.status == 200, reply.body
    return reply.body


async def test_an_quota_is_set_in_parts_listed_and_stands_in_the_log(api: Any) -> None:
    first = await put(api, "ups", weight=0.5, in_flight_max=100, why="their gateway loops")
    assert (first["weight"], first["in_flight_max"], first["in_flight"]) == (0.5, 100, 0)
    assert (await put(api, "ups", weight=2))["in_flight_max"] == 100
    last = await put(api, "ups", in_flight_max=None, why="mended")
    assert (last["weight"], last["in_flight_max"], last["why"]) == (2, None, "mended")
    listed = (await api.get("/v1/quotas", scopes="ops")).body
    assert listed["items"] == [last]
    assert api.woken == [*READY_NOW] * 3

    rows = await api.rows(
        "SELECT actor, verb, target, canonical FROM statesvc.action ORDER BY batch_id"
    )
    mine = [row for row in rows if row[1] == "set_quota"]
    assert {row[:3] for row in mine} == {(last["changed_by"], "set_quota", "carrier ups")}
    assert orjson.loads(mine[0][3])["details"] == {
        "in_flight_max": 100,
        "weight": "0.5",
        "why": "their gateway loops",
    }
