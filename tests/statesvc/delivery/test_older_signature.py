"""URLs of subscriptions, and signatures of older schemes."""

import asyncio
import base64
import hashlib
import hmac
import time
from ipaddress import ip_network

import pytest

from statesvc.delivery.http_sender import HttpSender
from statesvc.delivery.own_headers import check_headers, checked_name, merged
from statesvc.delivery.signing import OlderSignature, shared_text, signed_headers
from statesvc.delivery.webhook_url import webhook_url
from statesvc.subscriptions.url import UrlRefusedError, checked_url

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


LOOPBACK = (ip_network("127.0.0.0/8"),)


@pytest.mark.parametrize(
    ("registered", "requested"),
    [
        ("/?sp=%2Ftriggers%2Fmanual&sig=a%2Bb%2Fc", None),
        ("/%40%28%7E%3A%41/(a)~:A@b", None),
        ("/a?x=%zz&y=%&z=100%25", None),
        ("/a/../b/./c//d", None),
        ("/a;b=c,d!$'*+?a[]=1&b=c+d%20e&&=", None),
        ("?a=b", "/?a=b"),
        ("", "/"),
        ("/a#part", "/a"),
        ("/\u00fc?\u00e9=%C3%A9", "/%C3%BC?%C3%A9=%C3%A9"),
        ("/a|b?{c}=<d>", "/a%7Cb?%7Bc%7D=%3Cd%3E"),
    ],
)
async def test_path_and_query_are_stored_and_requested_as_registered(
    registered: str, requested: str | None
) -> None:
    wanted = requested or registered
    lines: list[bytes] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append(await reader.readline())
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server, HttpSender(allowed=LOOPBACK, total_seconds=5) as sender:
        origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        stored, _ = await checked_url(origin + registered, LOOPBACK)
        assert stored == origin + wanted
        assert (await checked_url(stored, LOOPBACK))[0] == stored
        assert (await sender.send(stored, headers={}, body=b"{}")).status_code == 204
    assert lines == [f"POST {wanted} HTTP/1.1\r\n".encode()]


async def test_a_plain_url_whose_name_leads_nowhere_is_told_so() -> None:
    with pytest.raises(UrlRefusedError, match="whose address cannot be found here"):
        await checked_url("http://no-such-host.invalid/hook", LOOPBACK)
    with pytest.raises(UrlRefusedError, match="must be https"):
        await checked_url("http://no-such-host.invalid/hook", ())


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("HTTPS://Shop.Example.COM/A", "https://shop.example.com/A"),
        ("https://b\u00fccher.example/", "https://xn--bcher-kva.example/"),
        ("https://[2001:DB8::9]:8443/a", "https://[2001:db8::9]:8443/a"),
    ],
)
def test_the_host_is_written_as_it_is_asked_for(text: str, written: str) -> None:
    assert str(webhook_url(text)) == written
