from typing import Any

from events.vocabulary import Status

PATH = "/v1/legal-holds"


async def post_hold(
    api: Any, path: str, tracking_number: str, *, scopes: str = "admin", carrier_id: str = "ups"
) -> Any:
    asked = {"carrier_id": carrier_id, "tracking_number": tracking_number, "why": "case 7"}
    return await api.call("POST", path, scopes=scopes, json=asked)


async def under_hold(api: Any, number: str) -> bool:
    cursor = await api.connection.execute(
        "SELECT statesvc.under_legal_hold(ARRAY(SELECT shipment_id FROM statesvc.stream WHERE"
        " number = %s))",
        [number],
    )
    return bool((await cursor.fetchone())[0])


async def test_a_hold_is_placed_listed_and_released(api: Any, scan: Any) -> None:
    await api.carriers.push(scan("1Z 99", Status.IN_TRANSIT))
    placed = await post_hold(api, PATH, "1z-99")
    assert placed.status == 201, placed.body
    assert (placed.body["number"], placed.body["tracking_number"], placed.body["released_at"]) == (
        "1Z99",
        "1z-99",
        None,
    )
    assert await under_hold(api, "1Z99")
    again = await post_hold(api, PATH, "1Z99")
    assert (again.status, again.body["code"]) == (409, "conflict")
    (listed,) = (await api.get(PATH, scopes="audit")).body["items"]
    assert listed == placed.body
    for asked in ({"tracking_number": "1z 99"}, {"tracking_number": "1Z-99", "carrier_id": "ups"}):
        assert (await api.get(PATH, scopes="audit", params=asked)).body["items"] == [listed]
    for asked in ({"tracking_number": "1Z98"}, {"tracking_number": "1Z99", "carrier_id": "fedex"}):
        assert (await api.get(PATH, scopes="audit", params=asked)).body["items"] == []
    released = await post_hold(api, f"{PATH}/release", "1Z99")
    assert (released.status, released.body["released_why"]) == (200, "case 7")
    assert not await under_hold(api, "1Z99")
    assert (await post_hold(api, f"{PATH}/release", "1Z99")).status == 404
    assert (await api.get(PATH, scopes="audit")).body["items"] == []
    assert (
        len((await api.get(PATH, scopes="audit", params={"released": "true"})).body["items"]) == 1
    )
    query = "SELECT verb FROM statesvc.action WHERE target = 'shipment ups 1Z99' ORDER BY batch_id"
    assert await api.rows(query) == [("place_legal_hold",), ("release_legal_hold",)]


async def test_a_number_that_nothing_is_known_of_is_refused(api: Any) -> None:
    assert (await post_hold(api, PATH, "misspelt")).body["code"] == "not_found"
    assert (await post_hold(api, PATH, "1", carrier_id="nobody")).body["code"] == "unknown_carrier"
    assert (await post_hold(api, PATH, "1", scopes="ops audit")).status == 403
    without_why = await api.call(
        "POST", PATH, scopes="admin", json={"carrier_id": "ups", "tracking_number": "1", "why": ""}
    )
    assert without_why.status == 422


async def test_all_shipments_of_the_number_are_held_also_those_that_come_later(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(scan("5", Status.IN_TRANSIT, discriminator="old"))
    assert (await post_hold(api, PATH, "5")).status == 201
    await api.carriers.push(scan("5", Status.IN_TRANSIT, discriminator="new"))
    assert await api.rows(
        "SELECT statesvc.under_legal_hold(ARRAY[shipment_id]) FROM statesvc.stream"
    ) == [(True,), (True,)]
