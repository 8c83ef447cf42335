"""Receivers that check an older signature take ours as they are: their checks are those of the
senders' own documents.
"""

import base64
import hashlib
import hmac
import time

import pytest

from statesvc.delivery.own_headers import check_headers, checked_name, merged
from statesvc.delivery.signing import OlderSignature, shared_text, signed_headers

SHOPIFY = OlderSignature(header="X-Shopify-Hmac-Sha256", encoding="base64")
GITHUB = OlderSignature(header="X-Hub-Signature-256", encoding="hex", prefix="sha256=")
STRIPE = OlderSignature(header="Stripe-Signature", encoding="hex", prefix="t={timestamp},v1=")
KEY, FORMER = bytes(range(32)), bytes(range(1, 33))
SECRET, FORMER_SECRET = shared_text(KEY), shared_text(FORMER)
BODY = '{"type":"shipment.status_changed","data":{"tracking_number":"1Zü"}}'.encode()


def as_shopify(secret: str, headers: dict[str, str], body: bytes) -> bool:
    digest = hmac.new(secret.encode("utf-8"), body, digestmod=hashlib.sha256).digest()
    return hmac.compare_digest(
        base64.b64encode(digest), headers["x-shopify-hmac-sha256"].encode("utf-8")
    )


def as_github(secret: str, headers: dict[str, str], body: bytes) -> bool:
    expected = (
        "sha256=" + hmac.new(secret.encode("utf-8"), msg=body, digestmod=hashlib.sha256).hexdigest()
    )
    return hmac.compare_digest(expected, headers["x-hub-signature-256"])


def as_stripe(secret: str, headers: dict[str, str], body: bytes) -> bool:
    items = [item.split("=", 2) for item in headers["stripe-signature"].split(",")]
    stamp = int(next(value for name, value in items if name == "t"))
    signed = f"{stamp}.{body.decode('utf-8')}"
    expected = hmac.new(
        secret.encode("utf-8"), msg=signed.encode("utf-8"), digestmod=hashlib.sha256
    ).hexdigest()
    is_known = any(hmac.compare_digest(expected, value) for name, value in items if name == "v1")
    return is_known and stamp >= time.time() - 300


CHECKS = [(SHOPIFY, as_shopify), (GITHUB, as_github), (STRIPE, as_stripe)]


def sent(older: OlderSignature, *keys: bytes) -> dict[str, str]:
    headers = signed_headers(
        keys, webhook_id="n1-1", timestamp=int(time.time()), body=BODY, older=older
    )
    return {name.lower(): value for name, value in headers.items()}


@pytest.mark.parametrize(("older", "check"), CHECKS)
def test_an_old_receiver_takes_it_unchanged_and_refuses_another_secret_or_body(
    older: OlderSignature, check: object
) -> None:
    assert callable(check)
    headers = sent(older, KEY)
    assert check(SECRET, headers, BODY)
    assert not check(FORMER_SECRET, headers, BODY)
    assert not check(SECRET, headers, BODY + b" ")
    assert {"webhook-id", "webhook-timestamp", "webhook-signature"} <= headers.keys(), (
        "beside Standard Webhooks"
    )


@pytest.mark.parametrize(("older", "check"), CHECKS)
def test_a_rotation_breaks_no_old_receiver_until_its_grace_is_over(
    older: OlderSignature, check: object
) -> None:
    assert callable(check)
    assert check(FORMER_SECRET, sent(older, KEY, FORMER), BODY)
    assert check(SECRET, sent(older, KEY, FORMER), BODY) == (older is STRIPE), (
        "a header with one signature has that of the former"
    )
    assert check(SECRET, sent(older, KEY), BODY)


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "content-LENGTH",
        "Webhook-Id",
        "traceparent",
        "Proxy-Authorization",
        "sec-fetch-mode",
        "User-Agent",
        "a b",
        "",
        "ü",
        "a:",
    ],
)
def test_a_header_of_http_or_of_the_signature_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"header"):
        checked_name(name)


def test_headers_are_bounded_and_named_once() -> None:
    check_headers({"Authorization": "Basic eA==", "X-Tenant": "a"})
    with pytest.raises(ValueError, match="twice"):
        check_headers({"X-Tenant": "a", "x-tenant": "b"})
    with pytest.raises(ValueError, match="4,096") as refused:
        check_headers({f"X-{number}": "secret" * 200 for number in range(4)})
    assert "secret" not in str(refused.value)


def test_ours_stand_whatever_a_receiver_calls_its_own() -> None:
    assert merged({"X-Sig": "own", "A": "b"}, {"x-sig": "ours"}) == {"A": "b", "x-sig": "ours"}
