"""References of a number are found by their values, stand in the log by their digest alone,
and go with the person.
"""

import asyncio
from typing import Any

import pytest
from psycopg import AsyncConnection

from events.vocabulary import Status
from statesvc.privacy.erasure import Erasure, erase
from statesvc.shipments import references as module
from statesvc.shipments.references import AttachedTo, References, attach_references
from tests.statesvc.api.test_erasure import dump
from tests.statesvc.conftest import ANOTHER_WAITS, one
from tests.statesvc.privacy.legible_values import legible
from tests.world.waiting import until

ORDER, SHOP = "Zebedee-4711", "Quux GmbH"
PATH = "/v1/shipments/ups/1z-99/references"
ATTACHED = {"order_id": ORDER, "metadata": {"shop": SHOP}}


async def put(api: Any, content: Any, path: str = PATH, *, scopes: str = "ingest") -> Any:
    return await api.call("PUT", path, scopes=scopes, json=content)


async def found(api: Any, **query: str) -> list[str]:
    return [
        item["tracking_number"]
        for page in await api.pages("/v1/shipments", **query)
        for item in page
    ]


async def entries(api: Any) -> list[Any]:
    query = (
        "SELECT actor, target, convert_from(canonical, 'UTF8')::jsonb FROM statesvc.action"
        " WHERE verb = 'attach_references' ORDER BY batch_id"
    )
    rows: list[Any] = await api.rows(query)
    return rows


async def test_references_may_precede_the_first_scan_and_find_the_shipment_by_each_value(
    api: Any, scan: Any
) -> None:
    attached = await put(api, ATTACHED)
    assert (attached.status, attached.body["number"]) == (200, "1Z99"), attached.body
    assert (await api.get(PATH)).body == attached.body
    assert await found(api, reference=ORDER) == ["1Z99"]
    await api.carriers.push(scan("1Z99", Status.IN_TRANSIT), scan("1Z98", Status.IN_TRANSIT))
    await api.carriers.push(scan("1Z99", Status.IN_TRANSIT), carrier_id="fedex")
    for reference in (ORDER, "  zebedee-4711 ", SHOP, "QUUX  GMBH"):
        assert await found(api, reference=reference) == ["1Z99"]
    assert await found(api, reference="Zebedee") == []
    assert await found(api, reference=ORDER, carrier_id="fedex") == []
    assert await found(api, reference=ORDER, tracking_number="1Z98") == []
    assert await found(api, reference=ORDER, tracking_number="1Z 99", status="in_transit") == [
        "1Z99"
    ]


async def test_a_number_that_is_awaited_is_found_and_answers(api: Any, scan: Any) -> None:
    path = "/v1/shipments/ups/1z 99"
    assert (await api.get(path)).status == 404
    attached = (await put(api, ATTACHED)).body
    ((listed,),) = await api.pages("/v1/shipments", reference=ORDER)
    assert (
        listed["carrier_id"],
        listed["tracking_number"],
        listed["status"],
        listed["version"],
    ) == ("ups", "1Z99", "unknown", 0)
    assert (listed["last_event_at"], listed["recorded_at"], listed["terminal"]) == (
        None,
        attached["changed_at"],
        False,
    )
    shown = await api.get(path)
    assert (shown.status, shown.body) == (200, {**listed, "others": []})
    assert (await api.get(path, headers={"If-None-Match": shown.headers["ETag"]})).status == 304
    assert (await api.get(f"{path}?as_of=2026-03-01T00:00:00Z")).status == 404
    assert (await api.get(f"{path}?discriminator=x")).status == 404
    assert await found(api, reference=ORDER, status="unknown") == ["1Z99"]
    for narrower in (
        {"status": "in_transit"},
        {"service": "x"},
        {"carrier_id": "fedex"},
        {"tracking_number": "1Z98"},
    ):
        assert await found(api, reference=ORDER, **narrower) == []
    await api.carriers.push(scan("1Z99", Status.IN_TRANSIT))
    ((scanned,),) = await api.pages("/v1/shipments", reference=ORDER)
    assert (scanned["shipment_id"], scanned["version"]) == (listed["shipment_id"], 1)


async def test_pages_hold_what_was_scanned_and_what_is_awaited_in_one_order(
    api: Any, scan: Any
) -> None:
    for number in range(7):
        await put(api, {"order_id": ORDER}, f"/v1/shipments/ups/1Z{number}/references")
        if number % 2:
            await api.carriers.push(scan(f"1Z{number}", Status.IN_TRANSIT))
    for limit in ("1", "2", "3", "50"):
        assert await found(api, reference=ORDER, limit=limit) == [
            f"1Z{number}" for number in range(7)
        ]


async def test_a_put_takes_the_place_of_all_that_was_attached(api: Any, scan: Any) -> None:
    await api.carriers.push(scan("1Z99", Status.IN_TRANSIT))
    await put(api, ATTACHED)
    replaced = await put(api, {"metadata": {"team": "blue"}})
    assert (replaced.body["order_id"], replaced.body["metadata"]) == (None, {"team": "blue"})
    assert await found(api, reference=ORDER) == []
    assert (await put(api, {})).status == 200
    assert (await api.get(PATH)).body["code"] == "not_found"
    assert await found(api, reference="blue") == []


async def test_each_change_is_an_entry_with_a_digest_and_no_value(api: Any) -> None:
    for content in (ATTACHED, ATTACHED, {"order_id": "other"}, ATTACHED):
        assert (await put(api, content)).status == 200
    told = await entries(api)
    assert [entry["details"]["values"] for _, _, entry in told] == [2, 1, 2], (
        "the same again is no change"
    )
    digests = [entry["details"]["digest"] for _, _, entry in told]
    assert digests[0] == digests[2] != digests[1]
    assert {target for _, target, _ in told} == {"shipment ups 1Z99"}
    assert not any(word in str(told) for word in (ORDER, SHOP, "shop"))


async def test_nothing_of_it_is_legible_in_the_database_and_an_erasure_takes_it_away(
    api: Any, scan: Any, owner: AsyncConnection[Any]
) -> None:
    await api.carriers.push(scan("1Z99", Status.IN_TRANSIT))
    await put(api, ATTACHED)
    assert ORDER.encode() in await legible(api.connection), "the search finds what is there"
    plain = await dump(owner)
    assert not any(form in plain for form in (ORDER, ORDER.encode().hex()))
    assert (
        await api.call(
            "POST", "/v1/shipments/ups/1Z99/erase", scopes="admin", json={"why": "asked to"}
        )
    ).status == 200
    assert (await api.get(PATH)).status == 404
    assert await found(api, reference=ORDER) == []
    again = await put(api, ATTACHED)
    assert (again.status, again.body["code"]) == (409, "conflict")
    seen = await legible(api.connection)
    assert not any(word.encode() in seen for word in (ORDER, SHOP))
    row = await (
        await api.connection.execute("SELECT sealed, digests FROM statesvc.shipment_references")
    ).fetchone()
    assert row == (None, [])


async def test_a_number_erased_before_anything_was_attached_takes_nothing(api: Any) -> None:
    assert (
        await api.call(
            "POST", "/v1/shipments/ups/1Z99/erase", scopes="admin", json={"why": "asked to"}
        )
    ).status == 200
    assert (await put(api, ATTACHED)).status == 409
    assert await entries(api) == []


async def test_an_erased_shipment_of_a_number_in_use_takes_its_references_but_not_the_next(
    api: Any, scan: Any
) -> None:
    for each in ("old", "new"):
        await api.carriers.push(
            scan("7", Status.IN_TRANSIT, discriminator=each), carrier_id="fedex"
        )
    path = "/v1/shipments/fedex/7/references"
    await put(api, ATTACHED, path)
    await api.call(
        "POST",
        "/v1/shipments/fedex/7/erase",
        scopes="admin",
        json={"why": "asked to", "discriminator": "old"},
    )
    assert (await api.get(path)).status == 404
    assert (await put(api, ATTACHED, path)).status == 200


async def test_an_erasure_waits_for_one_who_attaches_at_the_same_time(
    api: Any, service: AsyncConnection[Any]
) -> None:
    # of two transactions at the same time none leaves a value behind the erasure
    number = AttachedTo("ups", "1Z99")
    async with service.transaction():
        await attach_references(
            service, api.keyring, number, References(order_id=ORDER), actor="x", why={}
        )
        wanted = Erasure(
            carrier_id="ups",
            tracking_number="1Z99",
            why="asked to",
            actor="tester",
            backup_days=7,
        )
        erasing = asyncio.create_task(erase(api.connection, wanted))
        await until(lambda: one(service, ANOTHER_WAITS))
    await erasing
    assert (await api.get(PATH)).status == 404
    assert (await put(api, ATTACHED)).status == 409


async def test_what_breaks_the_contract_is_named_and_not_repeated(api: Any) -> None:
    for content, pointer in (
        ({"order_id": ""}, "/body/order_id"),
        ({"order_id": "a\x00b"}, "/body/order_id"),
        ({"order_id": "x" * 501}, "/body/order_id"),
        ({"order": "4711"}, "/body/order"),
        ({"metadata": {"with blank": "x"}}, "/body/metadata/with blank"),
        ({"metadata": {f"n{each}": "x" for each in range(51)}}, "/body/metadata"),
        ({"metadata": {"n": 5}}, "/body/metadata/n"),
    ):
        refused = await put(api, content)
        assert (refused.status, refused.body["errors"][0]["pointer"]) == (422, pointer), content


async def test_a_value_that_very_many_numbers_have_is_no_reference(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NUMBERS_MAX", 2)
    for each in range(3):
        await put(api, {"metadata": {"shop": "eu"}}, f"/v1/shipments/ups/N{each}/references")
    refused = await api.get("/v1/shipments", params={"reference": "eu"})
    assert (refused.status, refused.body["code"]) == (422, "invalid_request")
