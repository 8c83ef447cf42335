"""A carrier's published keys: fetched once, kept while its server is away, never fetched at a
stranger's word, never from inside.
"""

import base64
import json
from collections.abc import AsyncIterator
from ipaddress import ip_network
from typing import Any

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, generate_private_key

from statesvc.ingress.jwks import (
    AGAIN_SECONDS,
    BYTES_MAX,
    CACHED_SECONDS,
    FRESH_SECONDS,
    KeySet,
    KeysUnavailableError,
    parse_keys,
)

PUBLIC = generate_private_key(public_exponent=65537, key_size=2048).public_key()
# to be refused
SHORT = generate_private_key(public_exponent=65537, key_size=1024).public_key()  # noqa: S505
LOOPBACK = (ip_network("127.0.0.0/8"),)


def number(value: int) -> str:
    return (
        base64.urlsafe_b64encode(value.to_bytes((value.bit_length() + 7) // 8, "big"))
        .rstrip(b"=")
        .decode()
    )


def jwk(key: RSAPublicKey = PUBLIC, **more: Any) -> dict[str, Any]:
    numbers = key.public_numbers()
    return {"kty": "RSA", "kid": "k1", "n": number(numbers.n), "e": number(numbers.e), **more}


class Publisher:
    """A key server that counts, and can be made to fail."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer: Any = {"keys": [jwk()]}
        self.status = 200
        self.url = ""

    async def handle(self, _request: web.Request) -> web.Response:
        self.asked += 1
        headers = {"Location": self.url + "/other"} if self.status == 302 else {}
        return web.Response(text=json.dumps(self.answer), status=self.status, headers=headers)


@pytest.fixture
async def publisher() -> AsyncIterator[Publisher]:
    publisher = Publisher()
    app = web.Application()
    app.router.add_get("/jwks", publisher.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    publisher.url = f"http://127.0.0.1:{runner.addresses[0][1]}/jwks"
    yield publisher
    await runner.cleanup()


async def test_a_key_is_fetched_once_and_again_when_it_is_old(publisher: Publisher) -> None:
    now = [0.0]
    keys = KeySet(publisher.url, allowed=LOOPBACK, clock=lambda: now[0])
    for _ in range(3):
        key = await keys.key("k1")
        assert key is not None
        assert key.public_numbers() == PUBLIC.public_numbers()
    assert publisher.asked == 1
    now[0] += FRESH_SECONDS
    await keys.key("k1")
    assert publisher.asked == 2


async def test_an_unknown_key_is_asked_for_once_a_minute(publisher: Publisher) -> None:
    now = [0.0]
    keys = KeySet(publisher.url, allowed=LOOPBACK, clock=lambda: now[0])
    assert [await keys.key(f"unknown {n}") for n in range(5)] == [None] * 5
    assert publisher.asked == 1
    publisher.answer = {"keys": [jwk(), jwk(kid="k2")]}
    now[0] += AGAIN_SECONDS
    assert await keys.key("k2") is not None
    assert publisher.asked == 2


@pytest.mark.parametrize(
    "failure",
    [
        {"status": 500},
        {"status": 302},
        {"answer": []},
        {"answer": {"keys": 1}},
        {"answer": "x" * BYTES_MAX},
    ],
)
async def test_known_keys_go_on_for_a_day_while_their_server_fails(
    publisher: Publisher, failure: dict[str, Any]
) -> None:
    now = [0.0]
    keys = KeySet(publisher.url, allowed=LOOPBACK, clock=lambda: now[0])
    assert await keys.key("k1") is not None
    for name, value in failure.items():
        setattr(publisher, name, value)
    now[0] += CACHED_SECONDS - 1
    assert await keys.key("k1") is not None
    assert publisher.asked == 2
    now[0] += AGAIN_SECONDS
    with pytest.raises(KeysUnavailableError):
        await keys.key("k1")


async def test_no_keys_come_from_a_private_network(publisher: Publisher) -> None:
    with pytest.raises(KeysUnavailableError):
        await KeySet(publisher.url).key("k1")
    assert publisher.asked == 0


@pytest.mark.parametrize(
    "member",
    [
        jwk(kty="EC"),
        jwk(use="enc"),
        jwk(alg="RS512"),
        jwk(kid=1),
        jwk(SHORT),
        jwk(n="*"),
        jwk(n="\u00e9"),
        jwk(n=1),
        jwk(e="Ag"),
        {"kid": "k1"},
        "text",
        None,
    ],
)
def test_a_member_that_is_no_such_key_is_left_out(member: Any) -> None:
    assert set(
        parse_keys(json.dumps({"keys": [member, jwk(kid="good", use="sig", alg="RS256")]}).encode())
    ) == {"good"}
