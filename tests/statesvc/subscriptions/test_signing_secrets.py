"""Whatever signs, and through every rotation: a test send verifies by what its subscriber was
given.
"""

import base64
import contextlib
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from standardwebhooks.webhooks import Webhook

from tests.statesvc.subscriptions.conftest import Api


async def test_a_test_is_sent_once_signed_with_both_secrets_and_leaves_no_trace(
    api: Api, heard: Any
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
    for table in ("notification", "outbox", "attempt", "dead_letter"):
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
    api: Api, heard: Any
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
    api: Api, heard: Any
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


async def test_a_rotation_without_grace_ends_the_former_secret_now(api: Api, heard: Any) -> None:
    url, got = heard
    made = await api.make(url=url)
    status, rotated = await api("POST", f"/{made['id']}/rotate-secret", grace_hours=0)
    assert (status, rotated["secret"] != made["secret"]) == (200, True)
    await api("POST", f"/{made['id']}/test")
    assert len(got[0][0]["webhook-signature"].split()) == 1
    assert (await api("POST", f"/{made['id']}/rotate-secret", grace_hours=1000))[0] == 422
