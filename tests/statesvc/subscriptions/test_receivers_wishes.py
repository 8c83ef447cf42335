"""Requests as a receiver asks for them: its own headers, a second signature, a name; and what
works without a master key.
"""

import base64
import hashlib
import hmac
from typing import Any

from statesvc.api.routes import routes
from statesvc.database.pool import Pool
from statesvc.http.inner_calls import InnerCalls
from statesvc.http.keys.api_keys import Caller
from statesvc.http.keys.key_store import Scope
from tests.statesvc.subscriptions.conftest import URL, Subscriptions
from tests.world.api import context_of

GITHUB = {
    "algorithm": "hmac-sha256",
    "header": "X-Hub-Signature-256",
    "encoding": "hex",
    "prefix": "sha256=",
}
HEADERS = {"Authorization": "Basic bWU6aHVudGVyMg==", "X-Tenant": "north"}


async def test_a_test_carries_own_headers_and_the_signature_that_the_receiver_checks(
    api: Subscriptions, heard: Any
) -> None:
    url, got = heard
    made = await api.make(
        url=url, name="Shop north", description="The old shop", headers=HEADERS, signature=GITHUB
    )
    assert (made["name"], made["description"], made["headers"], made["signature"]) == (
        "Shop north",
        "The old shop",
        [*HEADERS],
        GITHUB,
    )
    await api("POST", f"/{made['id']}/test")
    ((headers, body),) = got
    assert {name: headers[name] for name in HEADERS} == HEADERS
    expected = "sha256=" + hmac.new(made["secret"].encode(), body, hashlib.sha256).hexdigest()
    assert headers["X-Hub-Signature-256"] == expected


async def test_values_of_headers_are_sealed_and_shown_nowhere(api: Subscriptions) -> None:
    made = await api.make(headers=HEADERS)
    secret = HEADERS["Authorization"].encode()
    ((row,),) = await api.rows("SELECT to_jsonb(s)::text FROM statesvc.subscription s")
    assert secret.decode() not in row
    assert base64.b64encode(secret).decode() not in row
    status, changed = await api("PATCH", f"/{made['id']}", {"headers": {"X-Tenant": "hunter2"}})
    assert (status, changed["headers"]) == (200, ["X-Tenant"])
    actions = await api.rows("SELECT convert_from(canonical, 'UTF8') FROM statesvc.action")
    assert "hunter2" not in str(actions)
    status, problem = await api("PATCH", f"/{made['id']}", {"headers": {"X-Tenant": "hunter2\n"}})
    assert (status, "hunter2" in str(problem)) == (422, False)


async def test_headers_go_nowhere_but_to_the_url_that_they_came_with(api: Subscriptions) -> None:
    made = await api.make(headers=HEADERS)
    _, same = await api("PATCH", f"/{made['id']}", {"url": URL, "name": "shop"})
    assert (same["headers"], same["name"]) == ([*HEADERS], "shop")
    _, moved = await api("PATCH", f"/{made['id']}", {"url": "https://other.invalid/"})
    assert moved["headers"] == []
    assert await api.rows("SELECT sealed_headers FROM statesvc.subscription") == [(None,)]


async def test_a_second_signature_takes_a_shared_secret(api: Subscriptions) -> None:
    status, problem = await api(
        "POST", body={"url": URL, "key_type": "ed25519", "signature": GITHUB}
    )
    assert (status, problem["code"]) == (422, "invalid_request")
    pair = await api.make(key_type="ed25519")
    assert (await api("PATCH", f"/{pair['id']}", {"signature": GITHUB}))[0] == 409
    made = await api.make(signature=GITHUB)
    assert (await api("POST", f"/{made['id']}/rotate-secret", key_type="ed25519"))[0] == 409
    _, without = await api("PATCH", f"/{made['id']}", {"signature": None})
    assert without["signature"] is None
    assert (await api("POST", f"/{made['id']}/rotate-secret", key_type="ed25519"))[0] == 200


async def test_what_no_request_can_carry_is_refused(api: Subscriptions) -> None:
    for wish, pointer in (
        ({"headers": {"Host": "x"}}, "/body/headers/Host"),
        ({"headers": {"X-A": "a\nb"}}, "/body/headers/X-A"),
        ({"headers": {"X-A": "a", "x-a": "b"}}, "/body/headers"),
        ({"headers": {f"X-{number}": "a" for number in range(21)}}, "/body/headers"),
        ({"signature": {**GITHUB, "header": "webhook-signature"}}, "/body/signature/header"),
        ({"signature": {**GITHUB, "algorithm": "md5"}}, "/body/signature/algorithm"),
        ({"signature": {**GITHUB, "encoding": "base32"}}, "/body/signature/encoding"),
        ({"signature": {**GITHUB, "prefix": "{timestamp}{timestamp}"}}, "/body/signature/prefix"),
        ({"name": ""}, "/body/name"),
        ({"name": "a\nb"}, "/body/name"),
    ):
        status, problem = await api("POST", body={"url": URL, **wish})
        assert (status, problem["code"]) == (422, "invalid_request"), wish
        assert pointer in {
            error["pointer"].removesuffix("/[key]") for error in problem["errors"]
        }, wish


async def test_the_same_put_again_changes_nothing_and_another_header_conflicts(
    api: Subscriptions,
) -> None:
    chosen = {
        "url": URL,
        "secret": "whsec_" + base64.b64encode(bytes(32)).decode(),
        "headers": HEADERS,
        "signature": GITHUB,
        "name": "shop",
    }
    path = "/5f0c7d6e-7c07-4c0f-9d4c-0f1f4d1b2a3c"
    assert [(await api("PUT", path, chosen))[0] for _ in range(2)] == [201, 200]
    for other in ({"headers": {"X-Tenant": "south"}}, {"signature": None}, {"name": None}):
        assert (await api("PUT", path, chosen | other))[0] == 409


async def test_who_pauses_or_looks_needs_no_master_key(api: Subscriptions, pool: Pool) -> None:
    made = [await api.make(headers=HEADERS, signature=GITHUB), await api.make(key_type="ed25519")]
    me = "cli:me"
    caller = Caller(key_id=me, name=me, owner=me, scopes=frozenset(Scope), actor=me)
    calls = InnerCalls(routes(context_of(pool)))
    path = "/v1/subscriptions/{subscription_id}"
    for one in made:
        for where, body in (
            (f"GET {path}", None),
            (f"POST {path}/pause", None),
            (f"POST {path}/resume", None),
            (f"PATCH {path}", {"name": "shop"}),
            (f"GET {path}/attempts", None),
        ):
            await calls.call(caller, where, given={"subscription_id": one["id"]}, body=body)
    listed = await calls.call(caller, "GET /v1/subscriptions", given={}, body=None)
    assert [(each["id"], each["name"], each["state"]) for each in listed["items"]] == [
        (one["id"], "shop", "active") for one in made
    ]
