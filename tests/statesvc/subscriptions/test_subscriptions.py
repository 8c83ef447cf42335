"""`/v1/subscriptions` over HTTP, against a real database."""

from ipaddress import ip_network

import orjson
import pytest

from statesvc.database.wakeups.wakeup import OUTBOX
from statesvc.http.keys.key_store import Scope, create_key
from statesvc.http.paging import encode_cursor
from statesvc.subscriptions.url import UrlRefusedError, checked_url
from tests.statesvc.subscriptions.conftest import LOOPBACK, URL, Subscriptions


async def test_a_contracted_rate_and_coalescing_are_set_changed_and_bounded(
    api: Subscriptions,
) -> None:
    made = await api.make(rate_per_second=5, coalesce=False)
    assert (made["rate_per_second"], made["coalesce"]) == (5, False)
    status, changed = await api(
        "PATCH", f"/{made['id']}", {"rate_per_second": None, "coalesce": True}
    )
    assert (status, changed["rate_per_second"], changed["coalesce"]) == (200, None, True)
    for wrong in (
        {"rate_per_second": 0},
        {"rate_per_second": 1e9},
        {"rate_per_second": "many"},
        {"coalesce": None},
    ):
        assert (await api("PATCH", f"/{made['id']}", wrong))[0] == 422


async def test_a_subscription_is_made_and_its_secret_shown_once(api: Subscriptions) -> None:
    made = await api.make(
        carriers=["ups", "fedex", "ups"],
        statuses=["delivered"],
        types=["shipment.status_changed"],
        payload="thin",
    )
    assert made["secret"].startswith("whsec_")
    assert made["carriers"] == ["fedex", "ups"]
    assert (made["state"], made["payload"], made["url"]) == ("active", "thin", URL)
    status, shown = await api("GET", f"/{made['id']}")
    limiter = shown.pop("limiter")
    assert (status, shown) == (
        200,
        {name: value for name, value in made.items() if name != "secret"},
    )
    assert (limiter["limit"], limiter["breaker"], limiter["next_allowed_at"]) == (0, "closed", None)
    ((sealed,),) = await api.rows("SELECT sealed_secrets[1] FROM statesvc.subscription")
    assert made["secret"].removeprefix("whsec_").encode() not in sealed


async def test_a_wish_that_breaks_the_contract_names_the_place(api: Subscriptions) -> None:
    for wish, pointer in (
        ({"url": "http://subscriber.invalid/"}, "/body/url"),
        ({"url": "ftp://subscriber.invalid/"}, "/body/url"),
        ({"url": "https://user:password@subscriber.invalid/"}, "/body/url"),
        ({"url": "https://10.0.0.1/hook"}, "/body/url"),
        ({"url": "https://[::ffff:169.254.169.254]/"}, "/body/url"),
        ({"url": "https:///hook"}, "/body/url"),
        ({"url": "hook"}, "/body/url"),
        ({"url": "https://subscriber.invalid/a b"}, "/body/url"),
        ({"url": "https://subscriber.invalid:99999/"}, "/body/url"),
        ({"url": "https://subscriber.invalid/" + "x" * 3000}, "/body/url"),
        ({"carriers": ["ups", "pigeon"]}, "/body/carriers/1"),
        ({"carriers": []}, "/body/carriers"),
        ({"statuses": ["deliverd"]}, "/body/statuses/0"),
        ({"types": ["shipment.lost"]}, "/body/types/0"),
        ({"payload": "fat"}, "/body/payload"),
        ({"key_type": "rsa"}, "/body/key_type"),
        (
            {"shipments": [{"carrier_id": "pigeon", "tracking_number": "1"}]},
            "/body/shipments/0/carrier_id",
        ),
        (
            {"give_up_after_seconds": {"shipment.lost": 60}},
            "/body/give_up_after_seconds/shipment.lost",
        ),
        (
            {"give_up_after_seconds": {"shipment.updated": 0}},
            "/body/give_up_after_seconds/shipment.updated",
        ),
        ({"secret": "whsec_mine"}, "/body/secret"),
    ):
        status, problem = await api("POST", body={"url": URL, **wish})
        assert (status, problem["code"]) == (422, "invalid_request"), wish
        assert [error["pointer"] for error in problem["errors"]] == [pointer], wish
        assert await api.rows("SELECT FROM statesvc.subscription") == [], wish


async def test_plain_http_is_for_allowed_networks_only() -> None:
    for url in ("http://127.0.0.1:9000/hook", "http://localhost:9000/hook", "https://127.0.0.1/"):
        assert await checked_url(url, (ip_network("127.0.0.0/8"), ip_network("::1/128"))) == (
            url,
            None,
        )
    for url in ("http://127.0.0.1/", "http://localhost/"):
        with pytest.raises(UrlRefusedError):
            await checked_url(url, ())
    with pytest.raises(UrlRefusedError, match="https"):
        await checked_url("http://8.8.8.8/", LOOPBACK)
    assert await checked_url("https://8.8.8.8/hook#part", ()) == ("https://8.8.8.8/hook", None)


async def test_a_forged_cursor_is_refused(api: Subscriptions) -> None:
    made = await api.make()
    forged = encode_cursor(["yesterday", "nobody"], {"list": "subscriptions"})
    assert (await api("GET", cursor=forged))[1]["code"] == "invalid_cursor"
    forged = encode_cursor(["yesterday", 1, 1], {"list": "attempts", "of": made["id"]})
    assert (await api("GET", f"/{made['id']}/attempts", cursor=forged))[1][
        "code"
    ] == "invalid_cursor"


async def test_a_change_touches_only_the_members_that_it_names(api: Subscriptions) -> None:
    made = await api.make(carriers=["ups"], statuses=["delivered"])
    for change in (
        {"carriers": None, "types": ["shipment.updated"]},
        {"url": "https://other.invalid/"},
    ):
        before = (await api("GET", f"/{made['id']}"))[1]
        status, changed = await api("PATCH", f"/{made['id']}", change)
        del before["limiter"]
        assert (status, changed) == (200, before | change)
    for refused in (
        {"url": "http://other.invalid/"},
        {"url": ""},
        {"url": None},
        {"statuses": ["nonsense"]},
    ):
        assert (await api("PATCH", f"/{made['id']}", refused))[0] == 422


async def test_pause_and_resume_are_idempotent_and_resume_wakes_the_notifier(
    api: Subscriptions,
) -> None:
    made = await api.make()
    for _ in range(2):
        status, shown = await api("POST", f"/{made['id']}/pause")
        assert (status, shown["state"]) == (200, "paused")
    assert api.woken == []
    await api.connection.execute(
        "UPDATE statesvc.subscription SET disabled_at = statesvc.clock(), disabled_why = 'gone'"
    )
    assert (await api("GET", f"/{made['id']}"))[1]["state"] == "disabled"
    for _ in range(2):
        status, shown = await api("POST", f"/{made['id']}/resume")
        assert (status, shown["state"], shown["disabled_why"]) == (200, "active", None)
    assert set(api.woken) == {OUTBOX}
    acts = "SELECT count(*) FROM statesvc.action WHERE target LIKE 'subscription %'"
    assert await api.rows(acts) == [(3,)], "created, paused, resumed: each once"


async def test_a_deleted_subscription_is_gone_and_its_secrets_forgotten(api: Subscriptions) -> None:
    made = await api.make()
    assert await api("DELETE", f"/{made['id']}") == (204, None)
    for method, path in [
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/rotate-secret"),
        ("POST", "/test"),
        ("GET", "/attempts"),
    ]:
        status, problem = await api(method, f"/{made['id']}{path}")
        assert (status, problem["code"]) == (404, "not_found")
    assert (await api("GET"))[1]["items"] == []
    assert await api.rows("SELECT sealed_secrets FROM statesvc.subscription") == [([],)]


async def test_every_change_is_an_action_in_the_log_without_the_secret_or_the_path(
    api: Subscriptions,
) -> None:
    made = await api.make(url="https://subscriber.invalid/token-in-the-path?key=1")
    await api("PATCH", f"/{made['id']}", {"statuses": ["delivered"], "url": URL})
    await api("POST", f"/{made['id']}/rotate-secret")
    await api("POST", f"/{made['id']}/pause")
    await api("POST", f"/{made['id']}/resume")
    await api("DELETE", f"/{made['id']}")
    actions = await api.rows(
        "SELECT verb, canonical FROM statesvc.action WHERE target LIKE 'subscription %' ORDER BY"
        " batch_id"
    )
    assert [verb for verb, _ in actions] == [
        *("subscription.create", "subscription.change", "subscription.rotate_secret"),
        *("subscription.pause", "subscription.resume", "subscription.delete"),
    ]
    details = [orjson.loads(canonical).get("details") for _, canonical in actions]
    assert details[:3] == [
        {"host": "subscriber.invalid"},
        {"changed": "statuses url"},
        {"grace_seconds": 86_400},
    ]
    assert not any(b"whsec" in canonical or b"token" in canonical for _, canonical in actions)


async def test_shipments_are_watched_in_any_spelling(api: Subscriptions) -> None:
    made = await api.make(shipments=[{"carrier_id": "ups", "tracking_number": "1z 99-1"}])
    assert made["shipments"] == [{"carrier_id": "ups", "tracking_number": "1Z991"}]
    _, changed = await api("PATCH", f"/{made['id']}", {"shipments": None})
    assert changed["shipments"] is None


async def test_personal_fields_take_the_scope_pii_and_are_recorded(api: Subscriptions) -> None:
    wish = {"url": URL, "payload": "full", "pii": True}
    assert (await api("POST", body=wish))[1]["code"] == "missing_scope"
    assert (await api("POST", body={**wish, "payload": "thin"}))[0] == 422
    api.key = await api.another(Scope.SUBSCRIPTIONS, Scope.READ)
    plain = await api.make(payload="full")
    assert (await api("PATCH", f"/{plain['id']}", {"pii": True}))[1]["code"] == "missing_scope"
    reader = api.key
    api.key = await api.another(Scope.SUBSCRIPTIONS, Scope.READ, Scope.PII)
    made = await api.make(**wish)
    assert (made["payload"], made["pii"]) == ("full", True)
    assert (await api("PATCH", f"/{plain['id']}", {"pii": True}))[1]["pii"] is True
    actions = await api.rows(
        "SELECT verb, canonical FROM statesvc.action WHERE target LIKE 'subscription %' ORDER BY"
        " batch_id"
    )
    assert [
        (verb, orjson.loads(canonical)["details"].get("pii")) for verb, canonical in actions
    ] == [
        ("subscription.create", False),
        ("subscription.create", True),
        ("subscription.change", True),
    ]
    api.key = reader
    moved = await api("PATCH", f"/{made['id']}", {"url": "https://elsewhere.invalid/"})
    assert moved[1]["code"] == "missing_scope", (
        "nobody leads personal fields elsewhere who may not read them"
    )
    assert (await api("PATCH", f"/{made['id']}", {"pii": False}))[1]["pii"] is False


async def test_attempts_are_listed_newest_first_and_paged(api: Subscriptions) -> None:
    made = await api.make()
    for number in range(1, 6):
        await api.connection.execute(
            "WITH n AS (INSERT INTO statesvc.notification SELECT gen_random_uuid(), 1, %(id)s,"
            " now(), now(), %(webhook)s, 'shipment.updated', 'ups', '1ZINVENTED', 'in_transit',"
            " 'in_transit' RETURNING shipment_id) INSERT INTO statesvc.open_attempt SELECT %(id)s,"
            " shipment_id, 1, %(number)s, now(), statesvc.clock(), 12, 'refused', 500, sha256(''),"
            " 'notifier-1' FROM n",
            {"id": made["id"], "number": number, "webhook": f"n1-{number}"},
        )
    _, first = await api("GET", f"/{made['id']}/attempts", limit=3)
    _, second = await api("GET", f"/{made['id']}/attempts", limit=3, cursor=first["next_cursor"])
    assert [one["number"] for one in first["items"] + second["items"]] == [5, 4, 3, 2, 1]
    assert second["next_cursor"] is None
    assert first["items"][0] | {"started_at": "", "recorded_at": ""} == {
        "webhook_id": "n1-5",
        "type": "shipment.updated",
        "test": False,
        "carrier_id": "ups",
        "tracking_number": "1ZINVENTED",
        "sequence": 1,
        "number": 5,
        "outcome": "refused",
        "status_code": 500,
        "duration_ms": 12,
        "started_at": "",
        "recorded_at": "",
        "response": None,
        "response_headers": None,
    }
    assert (await api("GET", f"/{made['id']}/attempts", responses="true"))[1][
        "code"
    ] == "missing_scope"
    api.key = await api.another(Scope.SUBSCRIPTIONS, Scope.PII)
    status, shown = await api("GET", f"/{made['id']}/attempts", responses="true")
    assert (status, shown["items"][0]["response"]) == (200, None)
    assert await api.rows("SELECT target FROM statesvc.action WHERE verb = 'read_personal'") == [
        (f"subscription {made['id']}",)
    ]


async def test_the_calls_take_the_scope_subscriptions(api: Subscriptions) -> None:
    _, api.key = await create_key(
        api.connection, name="reader", scopes=[Scope.READ, Scope.OPS], created_by="test"
    )
    assert (await api("GET"))[0] == 403
    api.key = "nonsense"
    assert (await api("GET"))[0] == 401
