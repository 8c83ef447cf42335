"""Secrets of subscriptions: chosen, rotated, and used by a test delivery."""

import base64
import contextlib
from typing import Any
from uuid import uuid4

import orjson
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from standardwebhooks.webhooks import Webhook

from projections.notification_type import NotificationType
from statesvc.http.keys.key_store import Scope
from statesvc.subscriptions import connection_test
from tests.contract import hook_validator
from tests.statesvc.subscriptions.conftest import URL, Subscriptions


async def test_a_test_is_sent_once_signed_with_both_secrets_and_leaves_no_trace(
    api: Subscriptions, heard: Any
) -> None:
    url, got = heard
    made = await api.make(url=url)
    _, rotated = await api("POST", f"/{made['id']}/rotate-secret")
    status, result = await api("POST", f"/{made['id']}/test")
    assert (status, result["outcome"], result["status_code"]) == (200, "refused", 500)
    ((headers, body),) = got
    for secret in (made["secret"], rotated["secret"]):
        assert Webhook(secret).verify(body, headers)["type"] == "subscription.test"
    assert headers["webhook-id"] == result["webhook_id"]
    for table in (
        "notification",
        "outbox",
        "attempt",
        "open_attempt",
        "subscription_failing",
        "dead_letter",
    ):
        assert await api.rows(f"SELECT FROM statesvc.{table}") == []
    assert (await api("GET", f"/{made['id']}"))[1]["state"] == "active"


def verifies(shown: str, headers: dict[str, str], body: bytes) -> bool:
    """Return whether one of the Ed25519 signatures is of the public key, as Standard
    Webhooks 1.0.0 describes it.
    """
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(shown.removeprefix("whpk_")))
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    for signature in headers["webhook-signature"].split():
        version, _, encoded = signature.partition(",")
        if version == "v1a":
            with contextlib.suppress(InvalidSignature):
                key.verify(base64.b64decode(encoded), content)
                return True
    return False


async def test_ed25519_signs_with_a_key_whose_public_half_is_always_shown_also_through_a_rotation(
    api: Subscriptions, heard: Any
) -> None:
    url, got = heard
    made = await api.make(url=url, key_type="ed25519")
    (first,) = made["public_keys"]
    assert (made["secret"], made["key_type"], first[:5]) == (None, "ed25519", "whpk_")
    assert (await api("GET", f"/{made['id']}"))[1]["public_keys"] == [first]
    await api("POST", f"/{made['id']}/test")
    assert verifies(first, *got[0])
    headers, body = got[0]
    assert not verifies(first, headers, body + b" ")
    _, rotated = await api("POST", f"/{made['id']}/rotate-secret")
    second = rotated["public_keys"][0]
    assert (rotated["public_keys"], second != first) == ([second, first], True)
    await api("POST", f"/{made['id']}/test")
    assert verifies(first, *got[1])
    assert verifies(second, *got[1])
    _, ended = await api("POST", f"/{made['id']}/rotate-secret", grace_hours=0)
    assert len(ended["public_keys"]) == 1
    await api("POST", f"/{made['id']}/test")
    assert not verifies(second, *got[2])
    assert verifies(ended["public_keys"][0], *got[2])


async def test_a_rotation_may_go_from_one_kind_of_signature_to_the_other_with_both_meanwhile(
    api: Subscriptions, heard: Any
) -> None:
    url, got = heard
    made = await api.make(url=url)
    _, rotated = await api("POST", f"/{made['id']}/rotate-secret", key_type="ed25519")
    assert (rotated["key_type"], rotated["secret"]) == ("ed25519", None)
    await api("POST", f"/{made['id']}/test")
    headers, body = got[0]
    assert Webhook(made["secret"]).verify(body, headers)["type"] == "subscription.test"
    assert verifies(rotated["public_keys"][0], headers, body)
    _, again = await api("POST", f"/{made['id']}/rotate-secret")
    assert again["key_type"] == "ed25519", "it stays of its kind"


SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
SEED = "whsk_" + base64.b64encode(bytes(range(32))).decode()


async def test_a_subscription_is_made_once_under_the_id_and_the_secret_that_were_chosen(
    api: Subscriptions,
) -> None:
    path = f"/{uuid4()}"
    wish = {
        "url": URL,
        "carriers": ["ups", "fedex"],
        "rate_per_second": 2.5,
        "give_up_after_seconds": {"shipment.updated": 60},
    }
    assert (await api("PUT", path, {**wish, "secret": SECRET}))[0] == 201
    status, found = await api("PUT", path, {**wish, "carriers": ["fedex", "ups"], "secret": SECRET})
    assert (status, found["id"], "secret" in found) == (200, path[1:], False)
    assert await api.rows(
        "SELECT count(*) FROM statesvc.action WHERE verb = 'subscription.create'"
    ) == [(1,)]
    others: list[dict[str, Any]] = [
        {"url": f"{URL}/2"},
        {"carriers": ["ups"]},
        {"rate_per_second": 2},
        {"give_up_after_seconds": {}},
        {"coalesce": False},
    ]
    for other in others:
        assert (await api("PUT", path, {**wish, "secret": SECRET, **other}))[1][
            "code"
        ] == "conflict"
    assert (await api("PUT", path, {**wish, "secret": SECRET[:-6] + "BBBBA="}))[1][
        "code"
    ] == "conflict"


async def test_another_owner_and_a_deleted_subscription_are_a_conflict_that_says_nothing_of_them(
    api: Subscriptions,
) -> None:
    path, wish = f"/{uuid4()}", {"url": URL, "secret": SECRET}
    assert (await api("PUT", path, wish))[0] == 201
    own, api.key = api.key, await api.another(Scope.SUBSCRIPTIONS, owner="stranger")
    status, refused = await api("PUT", path, wish)
    assert (status, refused["code"]) == (409, "conflict")
    assert (await api("PUT", f"{path}/secret", {"secret": SECRET}))[0] == 404
    api.key = own
    assert (await api("DELETE", path))[0] == 204
    assert (await api("PUT", path, wish))[1] == refused


async def test_a_chosen_secret_replaces_the_present_one_and_again_changes_nothing(
    api: Subscriptions,
) -> None:
    made = await api.make(key_type="ed25519")
    path = f"/{made['id']}/secret"
    status, shown = await api("PUT", path, {"secret": SEED, "grace_hours": 1})
    assert (status, len(shown["public_keys"])) == (200, 2)
    assert (await api("PUT", path, {"secret": SEED, "grace_hours": 1}))[1]["public_keys"] == shown[
        "public_keys"
    ]
    status, shown = await api("PUT", path, {"secret": SECRET, "grace_hours": 0})
    assert (shown["key_type"], shown["public_keys"]) == ("hmac", [])
    rotated = await api.rows(
        "SELECT count(*) FROM statesvc.action WHERE verb = 'subscription.rotate_secret'"
    )
    assert rotated == [(2,)]


async def test_what_is_no_secret_is_refused_without_repeating_it(api: Subscriptions) -> None:
    for secret in (
        "",
        "whsec_",
        "whsec_AAAA",
        SECRET[:-1],
        SECRET.replace("whsec_", ""),
        SEED + "A",
        "whsec_" + "A" * 88,
        "whsk_" + "A" * 32,
    ):
        for path in (f"/{uuid4()}", f"/{uuid4()}/secret"):
            body: dict[str, Any] = (
                {"secret": secret} if path.endswith("secret") else {"url": URL, "secret": secret}
            )
            status, problem = await api("PUT", path, body)
            assert (status, [error["pointer"] for error in problem["errors"]]) == (
                422,
                ["/body/secret"],
            ), secret
            assert len(secret) < 8 or secret not in str(problem), secret


async def test_a_secret_of_the_other_kind_is_refused(api: Subscriptions) -> None:
    status, problem = await api("PUT", f"/{uuid4()}", {"url": URL, "secret": SEED})
    assert (status, "different kinds" in str(problem)) == (422, True)


async def test_it_is_the_example_of_its_type_signed_and_listed(
    api: Subscriptions, heard: Any
) -> None:
    for kind in NotificationType:
        await _is_the_example(api, heard, kind)


async def _is_the_example(api: Subscriptions, heard: Any, kind: NotificationType) -> None:
    url, got = heard
    got.clear()
    made = await api.make(url=url)
    _, result = await api("POST", f"/{made['id']}/test", {"type": kind.value})
    ((headers, sent),) = got
    body = Webhook(made["secret"]).verify(sent, headers)
    hook_validator().validate(body)
    assert (body["type"], body["data"]["test"]) == (kind.value, True)
    (listed,) = (await api("GET", f"/{made['id']}/attempts"))[1]["items"]
    ended = {"outcome": "refused", "status_code": 500, "webhook_id": headers["webhook-id"]}
    assert ended.items() <= result.items()
    about = {name: body["data"].get(name) for name in ("carrier_id", "tracking_number")}
    assert (
        ended | about | {"type": kind.value, "test": True, "number": 1}
    ).items() <= listed.items()


async def test_it_has_the_payload_of_its_subscription(api: Subscriptions, heard: Any) -> None:
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


async def test_an_unknown_type_is_refused_with_those_that_there_are(api: Subscriptions) -> None:
    made = await api.make()
    status, problem = await api("POST", f"/{made['id']}/test", {"type": "shipment.lost"})
    assert (status, problem["code"]) == (422, "invalid_request")
    assert "shipment.status_changed" in problem["errors"][0]["detail"]


async def test_the_newest_are_listed_and_forgotten_with_the_subscription(
    api: Subscriptions, heard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_test, "RECORDED_MAX", 3)
    made, other = await api.make(url=heard[0]), await api.make(url=heard[0])
    sent = [(await api("POST", f"/{made['id']}/test"))[1]["webhook_id"] for _ in range(5)]
    await api("POST", f"/{other['id']}/test")
    _, page = await api("GET", f"/{made['id']}/attempts")
    assert [one["webhook_id"] for one in page["items"]] == sent[:1:-1]
    await api("DELETE", f"/{made['id']}")
    assert len(await api.rows("SELECT FROM statesvc.test_attempt")) == 1
