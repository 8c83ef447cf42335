"""Pushes in parts, as documented by carriers, and with hostile heads."""

import asyncio
import base64
import hashlib
import hmac
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from events.carriers import CARRIERS
from events.carriers.carrier import Basic, Hmac, SharedHeader, UrlToken
from statesvc.bodies.sealed_message import message_id
from statesvc.database.breaker import DatabaseBreaker
from statesvc.ingress.authentication import Verifier
from statesvc.ingress.carrier_authenticator import RetainedHeaders
from statesvc.ingress.webhooks import DiskRoom
from statesvc.settings.carrier_settings import read_chosen_authentication
from tests.statesvc.ingress.conftest import SECRET

EASYPOST_BODY: Final = Path(__file__).with_name("documented") / "easypost_event_body.json"
BODY: Final = b'{"event": "track_updated", "carrier": "usps"}'
NOW: Final = 1_688_493_100.0


def hmac_of(secret: str, signed: bytes) -> bytes:
    return hmac.new(secret.encode(), signed, hashlib.sha256).digest()


def based(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


@dataclass(frozen=True, kw_only=True)
class Push:
    carrier_id: str
    source: str
    secret: str
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = BODY
    chosen: str | None = None
    """Authentication that the shipper agreed on, as `STATESVC_WEBHOOK_AUTH_<CARRIER>` has it."""


EASYSHIP_SECRET: Final = "webh_092dflkjhwelkjr109834wlkejhr8sdh"
EASYSHIP_TOKEN: Final = "eyJhbGciOiJIUzI1NiJ9.eyJlYXN5c2hpcF9jb21wYW55X2lkIjoiZWFzeXNoaXBfY29tcGFueV9pZCJ9.-gcTgynbezCqmJLXMMyhieHNlcbXei1e8bnaedLadlA"
"""The document's secret and claims, `{"easyship_company_id":"easyship_company_id"}`, encoded as
Ruby's JWT.encode(claims, key, 'HS256').
"""

PUSHES: Final = (
    Push(
        carrier_id="sendcloud",
        source="digest: sendcloud.dev/api/v2/webhooks and /api/v3/webhooks, read 2026-11",
        secret="secretkey",
        headers={
            "Sendcloud-Signature": (
                "1eed4b3d41f4653ac64fd56f1bf1cbfd349e4482cbc11dff7134bd93e5da4b0a"
            )
        },
        body=b'{"key": "value"}',
    ),
    Push(
        carrier_id="sendcloud",
        source="sendcloud.dev/api/v3/event-subscriptions, auth type api_key, read 2026-11",
        secret="your-key",
        headers={"X-Api-Key": "your-key"},
        chosen="header:X-Api-Key",
    ),
    Push(
        carrier_id="sendcloud",
        source="sendcloud.dev/api/v3/event-subscriptions, auth type bearer, read 2026-11",
        secret="your-token",
        headers={"Authorization": "Bearer your-token"},
        chosen="bearer",
    ),
    Push(
        carrier_id="sendcloud",
        source="sendcloud.dev/api/v3/event-subscriptions, auth type basic, read 2026-11",
        secret="user:pass",
        headers={"Authorization": "Basic dXNlcjpwYXNz"},
        chosen="basic",
    ),
    Push(
        carrier_id="easypost",
        source=(
            "digest: EasyPost client libraries, test of validate_webhook with the event body of"
            " EasyPost/examples, read 2026-11"
        ),
        secret="s\N{LATIN SMALL LETTER E WITH ACUTE}cret",
        headers={
            "X-Hmac-Signature": (
                "hmac-sha256-hex=38f3f53c103713df81616a0a186d77141957323ec21d5fe9363db93840f527db"
            )
        },
        body=EASYPOST_BODY.read_bytes(),
    ),
    Push(
        carrier_id="easyship",
        source=(
            "developers.easyship.com/reference/webhooks-guide.md of 2026-04-20: secret and claims"
            " of its example"
        ),
        secret=EASYSHIP_SECRET,
        headers={"X-EASYSHIP-SIGNATURE": EASYSHIP_TOKEN},
    ),
    Push(
        carrier_id="fedex",
        source=(
            "developer.fedex.com, Advanced Integrated Visibility Validation Process (its Java),"
            " read 2026-11"
        ),
        secret="secureToken",
        headers={"fdx-signature": based(hmac_of("secureToken", BODY))},
    ),
    Push(
        carrier_id="fedex",
        source="the same page: 'finalize the MAC operation by hex encoding', read 2026-11",
        secret="secureToken",
        headers={"fdx-signature": hmac_of("secureToken", BODY).hex()},
    ),
    Push(
        carrier_id="aftership",
        source="www.aftership.com/docs/tracking/webhook/webhook-signature, read 2026-11",
        secret="webhook-secret",
        headers={"aftership-hmac-sha256": based(hmac_of("webhook-secret", BODY))},
    ),
    Push(
        carrier_id="aftership",
        source="www.aftership.com/docs/returns/webhook/webhook-signature, read 2026-11",
        secret="webhook-secret",
        headers={"as-signature-hmac-sha256": based(hmac_of("webhook-secret", BODY))},
    ),
    Push(
        carrier_id="aftership",
        source="www.aftership.com/docs/shipping/webhook/webhook-signature, read 2026-11",
        secret="webhook-secret",
        headers={"am-webhook-signature": based(hmac_of("webhook-secret", BODY))},
    ),
    Push(
        carrier_id="aftership",
        source=(
            "the returns page's note on organizations from before 2022-10-25:"
            " hmac-sha256={signature}, read 2026-11"
        ),
        secret="webhook-secret",
        headers={"am-webhook-signature": f"hmac-sha256={based(hmac_of('webhook-secret', BODY))}"},
    ),
    Push(
        carrier_id="ship24",
        source="docs.ship24.com/webhooks/authentication, read 2026-11",
        secret="your_webhook_secret",
        headers={"Authorization": "Bearer your_webhook_secret"},
    ),
    Push(
        carrier_id="dhl_unified",
        source=(
            "developer.dhl.com, DHL Shipment Tracking Push Bruno Collection of 2025-07:"
            " hook.authentication"
        ),
        secret="example-token-123",
        headers={"example-secure-header": "example-token-123"},
        chosen="header:example-secure-header",
    ),
    Push(
        carrier_id="amazon",
        source=(
            "developer-docs.amazon.com/amazon-shipping/docs/track-a-shipment-push-notifications,"
            " API key, read 2026-11"
        ),
        secret="abcdef12345",
        headers={"X-API-KEY": "abcdef12345"},
        chosen="header:X-API-KEY",
    ),
    Push(
        carrier_id="amazon",
        source="the same page, query parameter: test.txt?X-Amz-Credential=, read 2026-11",
        secret="abcdef12345",
        query={"X-Amz-Credential": "abcdef12345"},
        chosen="query:X-Amz-Credential",
    ),
    Push(
        carrier_id="shippo",
        source=(
            "docs.goshippo.com/docs/Tracking/WebhookSecurity, self-generated token, read 2026-11"
        ),
        secret="123abc",
        query={"token": "123abc"},
    ),
    Push(
        carrier_id="shippo",
        source="the same page, HMAC: its stamp t=1688493073, read 2026-11",
        secret="shared",
        headers={
            "Shippo-Auth-Signature": (
                f"t=1688493073,v1={hmac_of('shared', b'1688493073.' + BODY).hex()}"
            )
        },
    ),
    Push(
        carrier_id="17track",
        source=(
            "api.17track.net/en/doc, Notification verification: SHA256 of the content, '/' and"
            " the key"
        ),
        secret="securityKey",
        headers={"sign": hashlib.sha256(BODY + b"/securityKey").hexdigest()},
    ),
    Push(
        carrier_id="usps",
        source="developers.usps.com, Subscriptions - Tracking 3.2, `secret` of 32 signs",
        secret="0123456789abcdef0123456789abcdef",
        headers={"X-HMAC": hmac_of("0123456789abcdef0123456789abcdef", BODY).hex()},
    ),
    Push(
        carrier_id="teleship",
        source="karrio, modules/connectors/teleship: verify_webhook_signature, read 2026-11",
        secret="whk",
        headers={"x-teleship-signature": hmac_of("whk", BODY).hex()},
    ),
    Push(
        carrier_id="inpost",
        source=(
            "developers.inpost-group.com/webhook-signature-verification, the body alone, read"
            " 2026-11"
        ),
        secret="shared",
        headers={"x-inpost-signature": based(hmac_of("shared", BODY))},
    ),
    Push(
        carrier_id="inpost",
        source="the same page, timestamp and body, with its stamp moved to our NOW, read 2026-11",
        secret="shared",
        headers={
            "x-inpost-timestamp": "2023-07-04T17:50:55.387Z",
            "x-inpost-signature": based(hmac_of("shared", b"2023-07-04T17:50:55.387Z." + BODY)),
        },
    ),
    Push(
        carrier_id="inpost",
        source="developers.inpost-group.com/webhooks, API key / custom headers, read 2026-11",
        secret="key",
        headers={"x-api-key": "key"},
        chosen="header:x-api-key",
    ),
    Push(
        carrier_id="ninjavan",
        source=(
            "Ninja Van's PHP sample (base64 of hash_hmac over php://input), as"
            " pastebin.com/iXfCe4W8 has it, read 2026-11"
        ),
        secret="my_shared_secret",
        headers={"X-NINJAVAN-HMAC-SHA256": based(hmac_of("my_shared_secret", BODY))},
    ),
    Push(
        carrier_id="jtexpress",
        source=(
            "J&T Open Platform of Malaysia, 2.1: base64(md5(bizContent + privateKey)) with the key"
            " of its sandbox, read 2026-11"
        ),
        secret="8e88c8477d4e4939859c560192fcafbc",
        headers={"digest": "WdRuj0AEzWg9lDM1nxyWhw=="},
        body=b"bizContent=%7B%22customerCode%22%3A%22ITTEST0001%22%2C%22txlogisticId%22%3A%22TEST123%22%7D&x=1",
    ),
    Push(
        carrier_id="clickpost",
        source="ClickPost's webhook settings: `webhook_key`",
        secret="k-1",
        headers={"webhook_key": "k-1"},
    ),
    Push(
        carrier_id="ups",
        source=(
            "UPS-API/api-documentation, UPSTrackAlert.yaml of 2024: destination.credential, opaque"
        ),
        secret="opaque",
        headers={"credential": "opaque"},
    ),
)


def is_accepted(
    push: Push, secret: str, body: bytes, *, headers: Mapping[str, str] | None = None
) -> bool:
    name = push.carrier_id.upper()
    environment = {
        f"STATESVC_WEBHOOK_SECRET_{name}": secret,
        f"STATESVC_WEBHOOK_AUTH_{name}": push.chosen or "",
    }
    schemes = CARRIERS[push.carrier_id].schemes(
        read_chosen_authentication(environment).get(name, ())
    )
    verifier = Verifier(schemes, (secret,), now=lambda: NOW, age_seconds_max=7200)
    sent = CIMultiDict(push.headers if headers is None else headers)
    return verifier.without_body(sent, push.query) or (
        verifier.may_be_signed(sent, len(body)) and verifier.with_body(sent, body)
    )


@pytest.mark.parametrize("push", PUSHES, ids=lambda push: f"{push.carrier_id}: {push.source}")
def test_a_push_as_documented_is_accepted_and_no_other(push: Push) -> None:
    assert is_accepted(push, push.secret, push.body)
    assert not is_accepted(push, f"{push.secret}:2", push.body)
    assert not is_accepted(push, push.secret, push.body, headers={}) or push.query
    for name, sent in push.headers.items():
        assert not is_accepted(
            push, push.secret, push.body, headers={**push.headers, name: sent[:-2]}
        )


# docs.shipstation.com/apis/docs/guides/webhooks-validation and
# developers.inpost-group.com/webhook-signature-verification, read 2026-11: RSA-SHA256 in base64
@pytest.mark.parametrize(
    ("carrier_id", "signature", "stamp_header"),
    [
        ("shipengine", "x-shipengine-rsa-sha256-signature", "x-shipengine-timestamp"),
        ("inpost", "x-inpost-signature", "x-inpost-timestamp"),
        ("inpost", "x-inpost-signature", None),
    ],
)
def test_stamp_and_body_may_be_signed_by_a_key_pair(
    carrier_id: str, signature: str, stamp_header: str | None
) -> None:
    private = generate_private_key(public_exponent=65537, key_size=2048)
    pem = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    stamp = {stamp_header: "2023-07-04T17:50:55Z"} if stamp_header else {}
    signed = b"".join(each.encode() + b"." for each in stamp.values()) + BODY
    headers = CIMultiDict(stamp | {"x-shipengine-rsa-sha256-key-id": "k1"})
    headers[signature] = based(private.sign(signed, PKCS1v15(), SHA256()))
    schemes = CARRIERS[carrier_id].schemes()
    verifier = Verifier(schemes, (pem.decode(),), now=lambda: NOW, age_seconds_max=7200)
    assert verifier.with_body(headers, BODY)
    assert not verifier.with_body(headers, BODY + b" ")


def test_no_header_is_checked_that_a_carrier_never_sends() -> None:
    invented = {"x-webhook-secret", "webhook-token", "dhl-webhook-token"}
    for carrier in CARRIERS.values():
        assert not invented & {
            getattr(scheme, "header", "").lower() for scheme in carrier.schemes()
        }, carrier.carrier_id


def test_what_a_shipper_may_choose_is_left_to_the_setting() -> None:
    # a row of `CARRIERS` that lists Basic or a token of the URL opens it to everyone;
    # Shippo documents its token
    listed = {
        carrier.carrier_id
        for carrier in CARRIERS.values()
        if any(isinstance(each, Basic | UrlToken) for each in carrier.authentication)
    }
    assert listed == {"shippo"}


@given(st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
def test_a_message_id_is_a_uuid_of_version_7_that_holds_its_time(
    unix_ms: int, random: bytes
) -> None:
    made = message_id(unix_ms, random)
    assert (made.version, made.variant, made.int >> 80) == (7, "specified in RFC 4122", unix_ms)


def test_headers_that_prove_the_push_are_kept_and_credentials_are_not() -> None:
    kept = RetainedHeaders(
        [
            Hmac(header="X-Acme-Signature"),
            Hmac(header="Authorization"),
            SharedHeader(header="credential"),
            Basic(),
        ]
    )
    sent = {
        "Content-Type": "text/xml",
        "X-Acme-Signature": "abc",
        "Webhook-Id": "w1",
        "Authorization": "Basic eA==",
        "Cookie": "a=b",
        "credential": "secret",
        "X-Api-Key": "secret",
        "X-Forwarded-For": "10.0.0.1",
    }
    document = orjson.loads(kept.document(CIMultiDictProxy(CIMultiDict(sent))))
    assert document == {"content-type": "text/xml", "x-acme-signature": "abc", "webhook-id": "w1"}


def test_a_header_that_is_no_utf_8_is_kept_as_latin_1() -> None:
    sent = CIMultiDictProxy(
        CIMultiDict({"User-Agent": b"caf\xe9".decode("utf-8", "surrogateescape")})
    )
    assert orjson.loads(RetainedHeaders([]).document(sent)) == {"user-agent": "café"}


def test_disk_room_is_looked_at_once_a_second(tmp_path: Path) -> None:
    times = iter([0.0, 0.5, 1.0])
    assert DiskRoom(None, free_bytes_min=2**62).is_enough()
    assert DiskRoom(tmp_path, free_bytes_min=0).is_enough()
    full = DiskRoom(tmp_path, free_bytes_min=2**62, now=lambda: next(times))
    assert not full.is_enough()
    assert not full.is_enough()


def test_an_open_breaker_lets_one_probe_through_after_each_pause() -> None:
    breaker = DatabaseBreaker(pause_seconds=1)
    assert breaker.lets_through(0)
    breaker.failed(0)
    assert not breaker.lets_through(0.9)
    assert breaker.lets_through(1.0)
    assert not breaker.lets_through(1.1), "the probe is under way"
    assert breaker.lets_through(2.1), "a probe that never reports is given up"
    breaker.failed(2.2)
    assert not breaker.lets_through(2.3)
    assert breaker.lets_through(3.2)
    breaker.succeeded()
    assert breaker.lets_through(3.3)
    assert breaker.lets_through(3.3)


async def answer(site: Any, head: bytes, body: bytes = b"1") -> int:
    """Return the status of a request of these bytes; 0 where the connection was closed without
    one.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    try:
        writer.write(
            head + b"Host: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        async with asyncio.timeout(10):
            line = await reader.readline()
    finally:
        writer.close()
    return int(line.split()[1]) if line else 0


def post(path: str = "/v1/webhooks/acme", **headers: bytes) -> bytes:
    lines = b"".join(
        name.encode().replace(b"_", b"-") + b": " + value + b"\r\n"
        for name, value in headers.items()
    )
    return f"POST {path} HTTP/1.1\r\n".encode() + lines


async def test_a_head_of_any_bytes_gets_a_plain_answer(serve: Any, written: io.StringIO) -> None:
    site = await serve()
    for head, expected in (
        (post(credential=b"new"), 200),
        (post(credential=b"new" + b" " * 4000), 200),
        (post(credential=b"n" * 8000), 401),
        (post(credential=b"n" * 9000), 400),
        (post(f"/v1/webhooks/acme?token={SECRET * 1000}"), 400),
        (post(f"/v1/webhooks/acme?token={SECRET * 100}"), 401),
        (post(X_Long=SECRET.encode() * 1000), 400),
        (post(credential=b"n\xff\xfe\x80w"), 401),
        (post(Authorization=b"Basic " + base64.b64encode(b"\xff\x00")), 401),
        (post(Authorization=b"Basic " + b"=" * 7000), 401),
        (post(Authorization=b"Bearer " + b"." * 7000), 401),
        (post("/v1/webhooks/signed", X_Sign=b"0" * 8000), 401),
        (post("/v1/webhooks/signed", X_Sign=b"\xe9" * 64), 401),
        (post("/v1/webhooks/signed", X_Sign=b""), 401),
    ):
        assert await answer(site, head) == expected, head
        assert SECRET not in written.getvalue(), head
        assert "request_failed" not in written.getvalue(), head


async def test_a_header_that_stands_twice_counts_once(serve: Any) -> None:
    site = await serve()
    assert await answer(site, post(credential=b"new") + b"credential: wrong\r\n") == 200
    assert await answer(site, post(credential=b"wrong") + b"credential: new\r\n") == 401
