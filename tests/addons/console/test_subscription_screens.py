"""Subscriptions on the console: listed by state, one with its limiter and attempts, and
what operators do with it.
"""

import re
from typing import Any
from uuid import uuid4

import orjson

from events.vocabulary import Status
from statesvc.delivery.outcome import AttemptOutcome
from tests.world.api import Api, Statement
from tests.world.console import ConsoleClient, words
from tests.world.deliver import deliver

LIST = "/console/subscriptions"
RANGE = {"since": "2026-01-01T00:00"}


async def _subscribe(api: Api, host: str = "shop.invalid", **wish: Any) -> str:
    made = await api.call(
        "POST",
        "/v1/subscriptions",
        scopes="subscriptions",
        json={"url": f"https://{host}/hook", **wish},
    )
    assert made.status == 201, made.body
    return f"{LIST}/{made.body['id']}"


async def _actions(api: Api) -> list[tuple[str, Any]]:
    rows = await (
        await api.connection.execute("SELECT canonical FROM statesvc.action ORDER BY batch_id")
    ).fetchall()
    found = [orjson.loads(canonical) for (canonical,) in rows]
    return [
        (each["verb"], each["details"].get("why")) for each in found if each["verb"] != "key.create"
    ]


async def test_each_state_has_a_list(console: ConsoleClient) -> None:
    for host in ("fine.invalid", "dead.invalid", "failing.invalid", "paused.invalid"):
        path = await _subscribe(console.api, host)
        subscription_id = path.rpartition("/")[2]
        change = {
            "dead.invalid": (
                "UPDATE statesvc.subscription SET disabled_at = statesvc.clock(), disabled_why ="
                " 'x' WHERE subscription_id = "
            ),
            "paused.invalid": (
                "UPDATE statesvc.subscription SET paused_at = statesvc.clock() WHERE"
                " subscription_id = "
            ),
            "failing.invalid": (
                "INSERT INTO statesvc.subscription_failing (since, failures, last_at, last_outcome,"
                " last_status_code, subscription_id) SELECT c, 7, c, 'refused', 503,"
                " s.subscription_id FROM statesvc.clock() c, statesvc.subscription s WHERE"
                " subscription_id = "
            ),
        }.get(host)
        if change:
            await console.api.carriers.execute(f"{change}%s", [subscription_id])
    await console.log_in("ops subscriptions")
    assert "7 tries answered 503" in await console.text(f"{LIST}?state=failing")
    for state, host in (("disabled", "dead"), ("failing", "failing"), ("paused", "paused")):
        (page,) = await console.api.pages(
            "/v1/subscriptions", scopes="ops subscriptions", state=state
        )
        assert [one["url"] for one in page] == [f"https://{host}.invalid/hook"]
    (page,) = await console.api.pages(
        "/v1/subscriptions", scopes="ops subscriptions", state="active"
    )
    assert [one["url"] for one in page] == [
        "https://fine.invalid/hook",
        "https://failing.invalid/hook",
    ]
    assert "fine.invalid" not in await console.text(f"{LIST}?state=paused")


async def test_attempts_are_drawn_and_listed_and_answers_are_for_who_says_why(
    console: ConsoleClient, scan: Statement
) -> None:
    path = await _subscribe(console.api)
    await console.api.carriers.push(scan("1Z1", Status.PICKED_UP))
    await deliver(console.api.connection, console.api.keyring, AttemptOutcome.REFUSED, 503)
    await console.log_in("ops subscriptions pii")
    text = await console.text(path)
    assert "answered 503" in text
    assert "ups 1Z1" in text
    assert "Answers may repeat personal data" in text
    assert "Requests of the last hour, minute by minute: 1" in text
    assert "0 delivered, 1 failed" in text
    assert "Waiting 1 oldest" in text
    assert "Delivered, last hour 0 % 0 of 1 tries" in text
    assert "1Z1" in await console.text(f"{path}?tab=waiting")
    assert (
        "answered 503"
        not in (await console.text(f"{path}?outcome=delivered"))
        .partition("Attempts")[2]
        .partition("What it gets")[0]
    )
    before = await _actions(console.api)
    token = await console.form_token(path)
    unsaid = await console.post(path, form_token=token, why="")
    assert unsaid.status == 422
    assert await _actions(console.api) == before
    shown = words(await (await console.post(path, form_token=token, why="ticket 3")).text())
    assert "This reading is an entry of the log." in shown
    assert (await _actions(console.api))[-1] == ("read_personal", "ticket 3")


async def test_what_an_operator_does_is_on_record_with_its_why(
    console: ConsoleClient, scan: Statement
) -> None:
    path = await _subscribe(console.api)
    await console.api.carriers.push(scan("1Z1", Status.PICKED_UP))
    await deliver(console.api.connection, console.api.keyring)
    await console.log_in("ops subscriptions", may_change="on")
    assert " ms" in await console.act(f"{path}/test", why="is it up", type="subscription.test")
    would = await console.preview(f"{path}/replay", why="they lost it", **RANGE)
    assert "0 of 1 would be sent again" in would
    assert "1 that the receiver has taken" in would
    done = await console.act(f"{path}/replay", why="they lost it", delivered_too="1", **RANGE)
    assert "1 of 1 are sent again" in done
    await deliver(console.api.connection, console.api.keyring)
    again = re.search(
        rf'href="({path}/notifications/n1-[^"/]+/resend)"', await (await console.get(path)).text()
    )
    assert again is not None
    assert "is sent again." in await console.act(again[1], why="that one")
    assert (await _actions(console.api))[1:] == [
        ("subscription.test", "is it up"),
        ("subscription.replay", "they lost it"),
        ("subscription.resend", "that one"),
    ]


async def test_one_is_created_and_its_secret_is_shown_once(console: ConsoleClient) -> None:
    await console.log_in("ops subscriptions", may_change="on")
    made = await console.act(
        f"{LIST}/create", why="a shop", url="https://shop.invalid/new", carriers="ups, fedex"
    )
    assert "whsec_" in made
    listed = await console.text(LIST)
    assert "https://shop.invalid/new" in listed
    assert "whsec_" not in listed
    assert await _actions(console.api) == [("subscription.create", "a shop")]
    refused = await console.preview(f"{LIST}/create", why="x", url="shop.invalid", carriers="upps")
    assert "carriers/0" in refused


async def test_a_key_sees_and_changes_those_of_its_owner_alone(console: ConsoleClient) -> None:
    path = await _subscribe(console.api)
    await console.api.carriers.execute("UPDATE statesvc.subscription SET owner = 'other'")
    await console.log_in("subscriptions", may_change="on")
    assert "shop.invalid" not in await console.text(LIST)
    token = await console.form_token(LIST)
    for deed in ("pause", "rotate-secret", "replay", "test"):
        refused = await console.post(
            f"{path}/{deed}", form_token=token, why="mine", step="do", since="2026-01-01T00:00"
        )
        assert "there is no subscription" in await refused.text()
    assert (await console.get(path)).status == 404
    assert (await console.get(f"{LIST}/{uuid4()}")).status == 404
    assert (await console.get(f"{LIST}/x")).status == 422
