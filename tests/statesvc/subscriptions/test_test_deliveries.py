"""A test of a type: its example, signed like any other, listed with the attempts, and of no
effect.
"""

from typing import Any

import orjson
import pytest
from standardwebhooks.webhooks import Webhook

from projections.notification_type import NotificationType
from statesvc.http.keys.key_store import Scope
from statesvc.subscriptions import connection_test
from tests.contract import hook_validators
from tests.statesvc.subscriptions.conftest import Api


@pytest.mark.parametrize("kind", NotificationType)
async def test_it_is_the_example_of_its_type_signed_and_listed(
    api: Api, heard: Any, kind: NotificationType
) -> None:
    url, got = heard
    made = await api.make(url=url)
    status, result = await api("POST", f"/{made['id']}/test", {"type": kind.value})
    assert (status, result["type"], result["outcome"], result["status_code"]) == (
        200,
        kind.value,
        "refused",
        500,
    )
    ((headers, sent),) = got
    body = Webhook(made["secret"]).verify(sent, headers)
    hook_validators()[kind].validate(body)
    assert (body["type"], body["data"]["test"], headers["webhook-id"]) == (
        kind.value,
        True,
        result["webhook_id"],
    )
    (listed,) = (await api("GET", f"/{made['id']}/attempts"))[1]["items"]
    assert {
        name: listed[name]
        for name in ("webhook_id", "type", "test", "number", "outcome", "status_code", "response")
    } == {
        "webhook_id": result["webhook_id"],
        "type": kind.value,
        "test": True,
        "number": 1,
        "outcome": "refused",
        "status_code": 500,
        "response": None,
    }
    assert (listed["carrier_id"], listed["tracking_number"]) == (
        body["data"].get("carrier_id"),
        body["data"].get("tracking_number"),
    )
    for table in (
        "notification",
        "outbox",
        "attempt",
        "open_attempt",
        "subscription_failing",
        "dead_letter",
    ):
        assert await api.rows(f"SELECT FROM statesvc.{table}") == []


async def test_it_has_the_payload_of_its_subscription(api: Api, heard: Any) -> None:
    url, got = heard
    api.key = await api.another(Scope.SUBSCRIPTIONS, Scope.READ, Scope.PII)
    full, personal = (
        await api.make(url=url, payload="full"),
        await api.make(url=url, payload="full", pii=True),
    )
    for made in (full, personal):
        await api("POST", f"/{made['id']}/test", {"type": "shipment.status_changed"})
    without, with_pii = (orjson.loads(body)["data"] for _, body in got)
    assert without["shipment"]["status"] == with_pii["shipment"]["status"] == without["to"]
    assert "signed_by" not in without["event"]
    assert with_pii["event"]["signed_by"] == with_pii["shipment"]["signed_by"] == "SAMPLE"


async def test_an_unknown_type_is_refused_with_those_that_there_are(api: Api, heard: Any) -> None:
    url, got = heard
    made = await api.make(url=url)
    wrong: Any
    for wrong in ({"type": "shipment.lost"}, {"type": None}, {"kind": "shipment.updated"}, []):
        status, problem = await api("POST", f"/{made['id']}/test", wrong)
        assert (status, problem["code"]) == (422, "invalid_request")
    _, problem = await api("POST", f"/{made['id']}/test", {"type": "shipment.lost"})
    assert "shipment.status_changed" in problem["errors"][0]["detail"]
    assert got == []


async def test_the_newest_are_listed_in_pages_and_forgotten_with_the_subscription(
    api: Api, heard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_test, "RECORDED_MAX", 3)
    made, other = await api.make(url=heard[0]), await api.make(url=heard[0])
    sent = [(await api("POST", f"/{made['id']}/test"))[1]["webhook_id"] for _ in range(5)]
    await api("POST", f"/{other['id']}/test")
    seen, cursor = [], None
    while True:
        _, page = await api(
            "GET", f"/{made['id']}/attempts", limit=2, **({"cursor": cursor} if cursor else {})
        )
        seen += [one["webhook_id"] for one in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == sent[:1:-1]
    await api("DELETE", f"/{made['id']}")
    assert len(await api.rows("SELECT FROM statesvc.test_attempt")) == 1
