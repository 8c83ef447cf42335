from pathlib import Path
from typing import Any, cast

from statesvc.api.routes import routes
from statesvc.api.served_context import served_context
from statesvc.http.openapi import build_document
from statesvc.http.removed_fields import REMOVED
from tests.world.api import Api, Statement


def test_each_call_asks_for_its_scope() -> None:
    nothing = cast("Any", None)
    context = served_context(pool=nothing, keyring=nothing, waker=nothing, readings=nothing)
    described = build_document(routes(context), version="1")
    scopes = {
        f"{method.upper()} {path}": call["security"][0]["key"]
        for path, calls in described["paths"].items()
        for method, call in calls.items()
    }
    assert scopes == {
        "GET /v1/shipments": ["read"],
        "GET /v1/shipments/{shipment_id}": ["read"],
        "GET /v1/shipments/{carrier_id}/{tracking_number}": ["read"],
        "GET /v1/shipments/{carrier_id}/{tracking_number}/history": ["read"],
        "GET /v1/shipments/{carrier_id}/{tracking_number}/audit": ["audit"],
        "GET /v1/shipments/{carrier_id}/{tracking_number}/references": ["read"],
        "PUT /v1/shipments/{carrier_id}/{tracking_number}/references": ["ingest"],
        "PUT /v1/shipments/{carrier_id}/{tracking_number}/awaited": ["ingest"],
        "DELETE /v1/shipments/{carrier_id}/{tracking_number}/awaited": ["ingest"],
        "GET /v1/awaited-numbers": ["read"],
        "POST /v1/shipments/lookup": ["read"],
        "GET /v1/feed": ["audit"],
        "GET /v1/feed/transitions": ["read"],
        "POST /v1/stream/tickets": ["read"],
        "GET /v1/checkpoint": ["read"],
        "GET /v1/checkpoint/keys": ["read"],
        "GET /v1/proofs/inclusion": ["read"],
        "GET /v1/proofs/consistency": ["read"],
        "GET /v1/shipments/{carrier_id}/{tracking_number}/evidence": ["audit"],
        "POST /v1/shipments/{carrier_id}/{tracking_number}/evidence": ["audit"],
        "POST /v1/shipments/{carrier_id}/{tracking_number}/erase": ["admin"],
        "GET /v1/queue": ["ops"],
        "GET /v1/status": ["ops"],
        "GET /v1/keys": ["admin"],
        "POST /v1/keys": ["admin"],
        "DELETE /v1/keys/{key_id}": ["admin"],
        "GET /v1/code-mappings": ["ops"],
        "GET /v1/rollouts": ["ops"],
        "GET /v1/dead-letters": ["ops"],
        "GET /v1/dead-letters/groups": ["ops"],
        "GET /v1/dead-letters/{id}": ["ops"],
        "POST /v1/dead-letters/replay": ["ops"],
        "POST /v1/dead-letters/{id}/replay": ["ops"],
        "POST /v1/dead-letters/discard": ["ops"],
        "POST /v1/dead-letters/{id}/discard": ["ops"],
        "GET /v1/messages/{message_id}": ["audit"],
        "GET /v1/legal-holds": ["audit"],
        "POST /v1/legal-holds": ["admin"],
        "POST /v1/legal-holds/release": ["admin"],
        "GET /v1/notices": ["ops"],
        "POST /v1/notices/{notice_id}/seen": ["ops"],
        "GET /v1/actions": ["ops"],
        "GET /v1/rollouts/{carrier_id}": ["ops"],
        "PUT /v1/rollouts/{carrier_id}": ["ops"],
        "GET /v1/rollouts/{carrier_id}/diffs": ["ops"],
        "GET /v1/reports/promises": ["read"],
        "GET /v1/reports/promises/late": ["read"],
        "GET /v1/reports/promises/export": ["read"],
        "GET /v1/expectations": ["ops"],
        "GET /v1/expectations/{carrier_id}": ["ops"],
        "PUT /v1/expectations/{carrier_id}": ["ops"],
        "POST /v1/expectations/{carrier_id}/preview": ["ops"],
        "GET /v1/quotas": ["ops"],
        "GET /v1/quotas/{carrier_id}": ["ops"],
        "PUT /v1/quotas/{carrier_id}": ["ops"],
        "GET /v1/workers": ["ops"],
        "GET /v1/unmapped-codes": ["ops"],
        "GET /v1/unmapped-codes/samples": ["ops"],
        "GET /v1/carriers/{carrier_id}/mappings": ["ops"],
        "POST /v1/carriers/{carrier_id}/mappings": ["ops"],
        "POST /v1/carriers/{carrier_id}/mappings/preview": ["ops"],
        "GET /v1/carriers/{carrier_id}/mappings/{revision}": ["ops"],
        "POST /v1/carriers/{carrier_id}/mappings/{revision}/renormalize": ["ops"],
        "POST /v1/carriers/{carrier_id}/renormalize": ["ops"],
        "POST /v1/subscriptions/{subscription_id}/replay": ["subscriptions"],
        "POST /v1/subscriptions/portal-links": ["subscriptions"],
        "PUT /v1/subscriptions/{subscription_id}": ["subscriptions"],
        "GET /v1/subscriptions/{subscription_id}": ["subscriptions"],
        "PATCH /v1/subscriptions/{subscription_id}": ["subscriptions"],
        "DELETE /v1/subscriptions/{subscription_id}": ["subscriptions"],
        "PUT /v1/subscriptions/{subscription_id}/secret": ["subscriptions"],
        "POST /v1/subscriptions": ["subscriptions"],
        "GET /v1/subscriptions": ["subscriptions"],
        "POST /v1/subscriptions/{subscription_id}/pause": ["subscriptions"],
        "POST /v1/subscriptions/{subscription_id}/resume": ["subscriptions"],
        "POST /v1/subscriptions/{subscription_id}/rotate-secret": ["subscriptions"],
        "POST /v1/subscriptions/{subscription_id}/test": ["subscriptions"],
        "GET /v1/subscriptions/{subscription_id}/attempts": ["subscriptions"],
        "GET /v1/subscriptions/{subscription_id}/notifications": ["subscriptions"],
        "GET /v1/subscriptions/{subscription_id}/notifications/{webhook_id}": ["subscriptions"],
        "POST /v1/subscriptions/{subscription_id}/notifications/{webhook_id}/resend": [
            "subscriptions"
        ],
    }
    assert {"from", "to"} <= described["components"]["schemas"]["AuditTransition"][
        "properties"
    ].keys()


async def test_an_integer_is_written_in_digits_whatever_the_call(api: Api) -> None:
    for value in ("1.0", "%2B5", "1_000", "%205", "5%20", "1e2", "0x10", "%D9%A5", ""):
        for path in (
            f"/v1/shipments?limit={value}",
            f"/v1/feed?limit={value}",
            f"/v1/proofs/inclusion?index={value}",
            f"/v1/proofs/consistency?from={value}&to=3",
        ):
            refused = await api.get(path, scopes="read audit ops")
            assert (refused.status, refused.body["code"]) == (422, "invalid_request"), path
        assert (await api.get("/v1/shipments?limit=5&max_staleness=1.5")).status == 200, value
        assert (await api.get("/v1/shipments?max_staleness=1_0")).status == 422, value


async def test_a_removed_parameter_has_no_effect_and_the_answer_warns(
    api: Api, scan: Statement
) -> None:
    await api.carriers.push(scan("1", "in_transit"))
    for path in ("/v1/shipments", "/v1/shipments/ups/1", "/v1/shipments/ups/1/history"):
        answer = await api.get(f"{path}?max_staleness=5")
        assert (answer.status, answer.headers["Statesvc-Staleness"]) == (200, "0"), path
        assert answer.headers["Statesvc-Warning"] == (
            "max_staleness has no effect: the newest state is answered"
        ), path
        assert answer.body == (await api.get(path)).body, path


def test_every_removed_parameter_is_on_the_page_of_promises() -> None:
    page = (Path(__file__).parents[3] / "docs" / "promises.md").read_text("utf-8")
    assert [name for name in REMOVED if name not in page] == []
