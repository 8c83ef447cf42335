"""Signed web tokens of a carrier, and the keys that it publishes for them."""

import base64
import hmac
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Any, Final

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, generate_private_key
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from statesvc.ingress.jwks import (
    AGAIN_SECONDS,
    BYTES_MAX,
    CACHED_SECONDS,
    FRESH_SECONDS,
    KeySet,
    KeysUnavailableError,
    parse_keys,
)
from statesvc.ingress.signatures import is_web_token

KEY: Final = b"webh_secret"
NOW: Final = 1_700_000_000.0


def part(value: Any) -> str:
    return (
        base64.urlsafe_b64encode(value if isinstance(value, bytes) else json.dumps(value).encode())
        .rstrip(b"=")
        .decode()
    )


def token(
    header: Any = None, claims: Any = None, key: bytes = KEY, algorithm: str = "sha256"
) -> str:
    signed = f"{part({'alg': 'HS256'} if header is None else header)}.{part({'easyship_company_id': 'C1'} if claims is None else claims)}"
    return f"{signed}.{part(hmac.new(key, signed.encode(), algorithm).digest())}"


def accepts(presented: str, *keys: bytes) -> bool:
    with freeze_time(datetime.fromtimestamp(NOW, UTC)):
        return is_web_token(presented, keys=keys or (b"old", KEY))


def test_the_well_known_example_of_jwt_io_is_accepted() -> None:
    well_known = (
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwia"
        "WF0IjoxNTE2MjM5MDIyfQ"
        ".SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
    )
    assert accepts(well_known, b"your-256-bit-secret")
    assert not accepts(well_known, b"your-256-bit-secret2")


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none"},
        {"alg": "None"},
        {"alg": "hs256"},
        {"alg": "HS512"},
        {"alg": "RS256"},
        {"alg": ["HS256"]},
        {"typ": "JWT"},
        {"alg": "HS256", "crit": ["b64"], "b64": False},
        ["HS256"],
        b"{",
        b"\xff",
        b"[" * 5000,
    ],
)
def test_a_token_of_another_kind_is_refused_even_with_a_signature_that_fits(header: Any) -> None:
    assert not accepts(token(header))


def test_a_token_without_a_signature_is_refused() -> None:
    header, claims, _ = token({"alg": "none"}).split(".")
    for unsigned in (
        f"{header}.{claims}.",
        f"{header}.{claims}",
        f"{part({'alg': 'HS256'})}.{claims}.",
    ):
        assert not accepts(unsigned)
    assert not accepts(token(key=b"other"))
    assert not accepts(token(algorithm="sha512"))


@pytest.mark.parametrize(
    ("claims", "accepted"),
    [
        ({}, True),
        ({"exp": NOW + 1}, True),
        ({"exp": NOW - 59}, True),
        ({"exp": NOW - 60}, False),
        ({"nbf": NOW + 60}, True),
        ({"nbf": NOW + 61}, False),
        ({"exp": "tomorrow"}, False),
        ({"exp": None}, False),
        ({"exp": True}, False),
        ({"exp": 10**400}, True),
        ({"nbf": 10**400}, False),
        ({"note": "x" * 9000}, False),
        (b'{"exp": NaN}', False),
        ([], False),
        (b"x", False),
    ],
)
def test_a_token_is_in_force_as_it_says(claims: Any, *, accepted: bool) -> None:
    assert accepts(token(claims=claims)) is accepted


def test_a_signature_is_written_in_one_way_only() -> None:
    header, claims, signature = token().split(".")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    same_bytes = signature[:-1] + alphabet[alphabet.index(signature[-1]) ^ 1]
    for written in (
        same_bytes,
        f"{signature}=",
        f" {signature}",
        f"{signature}\n",
        f"{signature}.",
        signature + "A" * 9000,
    ):
        assert not accepts(f"{header}.{claims}.{written}")


def test_noise_is_a_plain_no() -> None:
    @given(st.text(alphabet="aZ0-_.=+/\u00e9", max_size=40))
    def is_refused(noise: str) -> None:
        for presented in (noise, f"{token()}{noise}x"):
            assert not is_web_token(presented, keys=(b"old", KEY))

    # once: it looks through all modules
    with freeze_time(datetime.fromtimestamp(NOW, UTC)):
        is_refused()


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
    async with TestServer(app, host="127.0.0.1") as server:
        publisher.url = str(server.make_url("/jwks"))
        yield publisher


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
