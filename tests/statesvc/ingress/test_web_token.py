"""Web tokens: HS256 with our secret, in force, written in the one way of the
standard; nothing else.
"""

import base64
import hmac
import json
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from statesvc.ingress.web_token import is_web_token

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


@given(st.text(alphabet="aZ0-_.=+/\u00e9", max_size=40))
def test_noise_is_a_plain_no(noise: str) -> None:
    assert not accepts(noise)
    assert not accepts(f"{token()}{noise}x")
