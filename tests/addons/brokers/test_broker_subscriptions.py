"""Subscriptions of brokers over HTTP: their login goes in and never comes out."""

import base64
import json
from typing import Any
from uuid import UUID

import pytest

from events.crypto.sealing import SealError
from statesvc.delivery.outgoing import Login
from statesvc.subscriptions.subscription_secrets import open_login
from tests.world.api import Api

PATH = "/v1/subscriptions"
SHOWN = "nats+tls://broker.invalid/shipments"
URL = "nats+tls://user:hunter2@broker.invalid/shipments"
SEALED = "SELECT sealed_login FROM statesvc.subscription"


async def call(api: Api, method: str, path: str = "", **arguments: Any) -> Any:
    reply = await api.call(method, PATH + path, scopes="subscriptions", **arguments)
    assert reply.status < 300, reply.body
    return reply.body


async def login(api: Api, subscription_id: str) -> Login | None:
    ((sealed,),) = await api.rows(SEALED)
    return open_login(api.keyring, UUID(subscription_id), sealed)


async def test_a_login_is_shown_by_no_call_and_stands_nowhere_in_the_clear(api: Api) -> None:
    made = await call(api, "POST", json={"url": URL})
    assert (made["url"], made["has_login"]) == (SHOWN, True)
    one = f"/{made['id']}"
    for method, path in (
        ("GET", ""),
        ("GET", one),
        ("POST", f"{one}/pause"),
        ("POST", f"{one}/rotate-secret"),
    ):
        text = json.dumps(await call(api, method, path))
        assert "hunter2" not in text
        assert "user:" not in text
    assert await login(api, made["id"]) == Login("user", "hunter2")
    dump = await api.rows("SELECT s::text FROM statesvc.subscription s")
    actions = await api.rows("SELECT encode(canonical, 'escape') FROM statesvc.action")
    stored = str(dump) + str(actions)
    assert "broker.invalid" in stored
    for secret in (b"hunter2", base64.b64encode(b"hunter2"), b"hunter2".hex().encode()):
        assert secret.decode() not in stored


async def test_a_sealed_login_opens_for_its_subscription_alone(api: Api) -> None:
    made = await call(api, "POST", json={"url": URL})
    with pytest.raises(SealError):
        await login(api, str(UUID(int=0)))
    assert await login(api, made["id"]) is not None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (SHOWN, Login("user", "hunter2")),
        ("nats+tls://other:word@broker.invalid/shipments", Login("other", "word")),
        ("nats+tls://elsewhere.invalid/shipments", None),
        ("nats+tls://broker.invalid/other", None),
        ("https://8.8.8.8/hook", None),
    ],
)
async def test_a_login_follows_no_url_but_the_one_it_came_with(
    api: Api, url: str, expected: Login | None
) -> None:
    made = await call(api, "POST", json={"url": URL})
    changed = await call(api, "PATCH", f"/{made['id']}", json={"url": url})
    assert changed["has_login"] == (expected is not None)
    assert await login(api, made["id"]) == expected
    await call(api, "PATCH", f"/{made['id']}", json={"coalesce": False})
    assert await login(api, made["id"]) == expected


async def test_a_deleted_subscription_keeps_no_login(api: Api) -> None:
    made = await call(api, "POST", json={"url": URL})
    await call(api, "DELETE", f"/{made['id']}")
    assert await login(api, made["id"]) is None
