"""A number that a shipper awaits: registered, shown, found, given up, and not kept
from whoever was erased.
"""

from datetime import datetime, timedelta
from typing import Any

import pytest

from events.vocabulary import Status
from statesvc.addons.expectations.watcher import observe_never_heard
from statesvc.privacy.erasure import Erasure, erase
from tests.statesvc.api.test_sent_notifications import listed as sent_to
from tests.statesvc.api.test_sent_notifications import resent, sent, shown
from tests.statesvc.api.test_subscription_replay import subscribe
from tests.world.console import ConsoleClient

STATE = "/v1/shipments/ups/1z 99"
PATH = f"{STATE}/awaited"


async def put(api: Any, hours: object = 48, path: str = PATH) -> Any:
    return await api.call("PUT", path, scopes="ingest", json={"hours": hours})


async def never_heard(api: Any, database: Any) -> None:
    await database.clock.advance(49 * 3600)
    assert len((await observe_never_heard(api.connection, worker="watcher")).observations) == 1


async def test_an_awaited_number_answers_before_its_first_scan(api: Any, scan: Any) -> None:
    made = await put(api)
    assert (made.status, made.body["number"], made.body["hours"]) == (200, "1Z99", 48), made.body
    awaited_at, due_at = (
        datetime.fromisoformat(made.body[name]) for name in ("awaited_at", "due_at")
    )
    assert due_at - awaited_at == timedelta(hours=48)
    assert (await put(api)).body == made.body
    shown = (await api.get(STATE)).body
    assert (shown["status"], shown["version"], shown["flags"], shown["recorded_at"]) == (
        "unknown",
        0,
        [],
        made.body["awaited_at"],
    )
    await api.carriers.push(scan("1Z99", Status.IN_TRANSIT))
    assert (await api.get(STATE)).body["version"] == 1


async def test_never_heard_is_a_flag_in_the_state_and_in_a_lookup(api: Any, database: Any) -> None:
    await put(api)
    await never_heard(api, database)
    shown = (await api.get(STATE)).body
    assert shown["flags"] == ["never_heard"]
    looked_up = await api.call(
        "POST",
        "/v1/shipments/lookup",
        scopes="read",
        json={"numbers": [{"tracking_number": "1Z99"}]},
    )
    ((one,),) = [each["shipments"] for each in looked_up.body["items"]]
    assert (one["flags"], one["version"], one["shipment_id"]) == (
        ["never_heard"],
        0,
        shown["shipment_id"],
    )


async def test_what_cannot_be_awaited_is_refused(api: Any) -> None:
    assert (await put(api, path="/v1/shipments/nobody/1/awaited")).body["code"] == "unknown_carrier"
    for hours in (0, 24 * 365 + 1, "soon", None):
        assert (await put(api, hours)).status == 422


async def test_an_erased_number_is_awaited_no_longer_and_not_again(api: Any) -> None:
    await put(api)
    await erase(
        api.connection,
        Erasure(
            carrier_id="ups", tracking_number="1Z99", why="asked to", actor="tester", backup_days=7
        ),
    )
    assert (await api.get(STATE)).status == 404
    assert (await put(api)).body["code"] == "conflict"


async def listed(api: Any, **query: str) -> list[str]:
    return [
        one["number"] for page in await api.pages("/v1/awaited-numbers", **query) for one in page
    ]


async def test_the_list_has_what_is_waited_for_and_what_was_never_heard_of(
    api: Any, scan: Any, database: Any
) -> None:
    for number, hours in (("1Z99", 48), ("1Z98", 20), ("1Z97", 30), ("1Z96", 10)):
        await put(api, hours, f"/v1/shipments/ups/{number}/awaited")
    await put(api, 9, "/v1/shipments/fedex/77/awaited")
    await api.carriers.push(scan("1Z96", Status.IN_TRANSIT))
    await api.carriers.push(scan("77", Status.IN_TRANSIT), carrier_id="fedex")
    assert await listed(api) == await listed(api, limit="1") == ["1Z98", "1Z97", "1Z99"], (
        "the next due first, what was heard of is left out"
    )
    assert await listed(api, order="newest", limit="2") == ["1Z99", "1Z97", "1Z98"]
    assert await listed(api, carrier_id="fedex") == await listed(api, never_heard="true") == []
    for hours in (21, 10):
        await database.clock.advance(hours * 3600)
        assert len((await observe_never_heard(api.connection, worker="watcher")).observations) == 1
    assert await listed(api) == ["1Z99"]
    assert await listed(api, never_heard="true", limit="1") == ["1Z98", "1Z97"]
    ((latest, _),) = await api.pages("/v1/awaited-numbers", never_heard="true", order="newest")
    assert (latest["number"], latest["hours"]) == ("1Z97", 30)
    awaited_at, due_at, observed_at = (
        datetime.fromisoformat(latest[name]) for name in ("awaited_at", "due_at", "observed_at")
    )
    assert due_at - awaited_at == timedelta(hours=30)
    assert observed_at > due_at
    odd = await api.get("/v1/awaited-numbers", params={"cursor": "x"})
    assert odd.body["code"] == "invalid_cursor"


async def test_status_says_how_many_were_never_heard_of_within_a_day(
    api: Any, database: Any
) -> None:
    async def said() -> list[str]:
        status = (await api.get("/v1/status", scopes="ops")).body
        return [one["text"] for one in status["troubles"] if one["about"] == "awaited numbers"]

    await put(api)
    assert await said() == []
    await never_heard(api, database)
    (text,) = await said()
    assert text.startswith(
        "within a day the hours of 1 were over and nothing was heard (ups); the last "
    )
    await database.clock.advance(25 * 3600)
    assert await said() == []


async def test_that_nothing_was_heard_is_found_by_its_number_with_the_body_as_it_was_sent(
    api: Any, database: Any
) -> None:
    subscription_id = await subscribe(api)
    await put(api)
    await never_heard(api, database)
    (body,) = await sent(api)
    for query in ({"tracking_number": "1Z-99"}, {"tracking_number": "1Z99", "carrier_id": "ups"}):
        (found,) = await sent_to(api, subscription_id, **query)
        assert (found["type"], found["outcome"]) == ("shipment.never_heard", "delivered")
    assert await sent_to(api, subscription_id, tracking_number="1Z99", carrier_id="fedex") == []
    one = await shown(api, subscription_id, found["webhook_id"])
    assert (one["body"], one["body_state"]) == (body, "shown")
    assert (await resent(api, subscription_id, found["webhook_id"])).status == 200
    assert await sent(api) == [body]
    assert len((await shown(api, subscription_id, found["webhook_id"]))["attempts"]) == 2


async def test_what_was_never_heard_of_is_known_while_the_add_on_is_off(
    api: Any, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(api)
    await never_heard(api, database)
    monkeypatch.setenv("STATESVC_ADDONS", "")
    assert (await api.get(STATE)).body["flags"] == ["never_heard"]
    status = (await api.call("GET", "/v1/status", scopes="ops")).body
    assert [one for one in status["troubles"] if one["about"] == "awaited numbers"] == []


async def test_numbers_that_nothing_was_heard_of_are_listed_and_the_overview_leads_there(
    console: ConsoleClient, database: Any
) -> None:
    await put(console.api)
    await console.log_in("ops read")
    assert "No number matches." in await console.text("/console/awaited")
    assert "1Z99 ups" in await console.text("/console/awaited?never_heard=")
    assert "The carrier has said nothing yet." in await console.text("/console/shipments/ups/1Z99")
    await never_heard(console.api, database)
    await console.log_in("ops read")
    assert "1Z99 ups" in await console.text("/console/awaited")
    assert "1Z99" not in await console.text("/console/awaited?carrier_id=fedex")
    assert "No number matches." in await console.text("/console/awaited?never_heard=")
    assert (
        'href="/console/awaited"'
        in (await (await console.get("/console")).text()).partition('id="settled"')[2]
    )
