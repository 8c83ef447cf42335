"""Who a carrier's push comes from: its secret, its token, its address."""

import asyncio
import base64
import hmac
import io
import re
import time
from ipaddress import ip_address, ip_network
from typing import Any, Final

import pytest
from aiohttp.test_utils import make_mocked_request
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from multidict import CIMultiDict

from statesvc.ingress import carrier_authenticator
from statesvc.ingress.carrier_authenticator import sender_address
from statesvc.ingress.group_commit import Stored
from statesvc.ingress.jwks import KeysUnavailableError
from statesvc.settings.carrier_settings import read_chosen_authentication
from tests.statesvc.ingress.conftest import BOOTSTRAP, SECRET

HERE = {
    "webhook_networks": {
        "ACME": (ip_network("127.0.0.1/32"),),
        "NOSECRET": (ip_network("127.0.0.0/8"),),
    }
}
ELSEWHERE = {
    "webhook_networks": {
        "ACME": (ip_network("20.65.16.22/31"),),
        "SIGNED": (ip_network("20.65.16.22/31"),),
        "NOSECRET": (ip_network("20.65.16.22/31"),),
    }
}
PRIVATE = generate_private_key(public_exponent=65537, key_size=2048)


async def test_beside_a_secret_the_address_is_one_proof_more(serve: Any) -> None:
    site = await serve(more=HERE)
    assert (await site.post(b"1", headers={}))[0] == 401
    assert (await site.post(b"1", headers={"credential": "new"}))[0] == 200
    site = await serve(more=ELSEWHERE)
    for headers in (
        {},
        {"credential": "new"},
        {"credential": "new", "X-Forwarded-For": "20.65.16.22"},
    ):
        status, answer, _ = await site.post(b"1", headers=headers)
        assert (status, answer["code"]) == (401, "bad_signature")
        assert "STATESVC_WEBHOOK_IPS_ACME" in answer["detail"]
    signature = hmac.new(b"s", b"1", "sha256").hexdigest()
    assert (await site.post(b"1", "signed", {"X-Sign": signature}))[0] == 401
    assert (await site.post(b"1", "nosecret", {}))[0] == 401
    assert (await site.post(b"1", headers={"Authorization": f"Bearer {BOOTSTRAP}"}))[0] == 200


async def test_the_word_of_a_trusted_proxy_counts(serve: Any) -> None:
    site = await serve(more=ELSEWHERE, trusted_proxies=(ip_network("127.0.0.0/8"),))
    assert (await site.post(b"1", "nosecret", {"X-Forwarded-For": "1.1.1.1, 20.65.16.23"}))[
        0
    ] == 200
    assert (await site.post(b"2", "nosecret", {"X-Forwarded-For": "20.65.16.23, 1.1.1.1"}))[
        0
    ] == 401
    assert (await site.post(b"2", "nosecret", {}))[0] == 401


WAYS = {
    "header:X-Request-Id": ({"X-Request-Id": "user:password"}, ""),
    "bearer": ({"Authorization": "Bearer user:password"}, ""),
    "basic": ({"Authorization": "Basic " + base64.b64encode(b"user:password").decode()}, ""),
    "query:key": ({}, "?key=user:password"),
}


@pytest.mark.parametrize("agreed", WAYS)
async def test_a_carrier_that_leaves_the_choice_is_let_in_by_what_was_chosen_alone(
    serve: Any, agreed: str
) -> None:
    environment = {
        "STATESVC_WEBHOOK_AUTH_CHOSEN": agreed,
        "STATESVC_WEBHOOK_SECRET_CHOSEN": "user:password",
    }
    site = await serve(more={"chosen_authentication": read_chosen_authentication(environment)})
    for way, (headers, query) in WAYS.items():
        assert (await site.post(way.encode(), "chosen", headers, query))[0] == (
            200 if way == agreed else 401
        ), way
    signed = hmac.new(b"user:password", b"1", "sha256").hexdigest()
    assert (await site.post(b"1", "chosen", {"X-Sign": signed}))[0] == 200
    stored = [str(row) for row in await site.rows("SELECT headers FROM statesvc.body")]
    assert len(stored) == 2
    assert not any("user:password" in row for row in stored)


async def test_without_a_choice_only_the_signature_lets_it_in(serve: Any) -> None:
    site = await serve()
    for headers, query in WAYS.values():
        status, answer, _ = await site.post(b"1", "chosen", headers, query)
        assert status == 401
        assert "STATESVC_WEBHOOK_AUTH_CHOSEN" in answer["detail"]


async def buy(site: Any, carrier_id: str = "tokens", **more: Any) -> tuple[int, Any, Any]:
    async with site.session.post(
        f"http://127.0.0.1:{site.port}/v1/webhooks/{carrier_id}/oauth/token", **more
    ) as answer:
        return answer.status, await answer.json(content_type=None), answer.headers


@pytest.mark.parametrize(
    "how",
    [
        {
            "data": {
                "grant_type": "client_credentials",
                "client_id": "id",
                "client_secret": "sec ret",
            }
        },
        {
            "data": {"grant_type": "client_credentials"},
            "headers": {"Authorization": "Basic " + base64.b64encode(b"id:sec+ret").decode()},
        },
        {"headers": {"Authorization": "Basic " + base64.b64encode(b"id:sec%20ret").decode()}},
    ],
)
async def test_a_bought_token_opens_the_door(serve: Any, how: dict[str, Any]) -> None:
    site = await serve()
    status, sold, headers = await buy(site, **how)
    assert (status, sold["token_type"], sold["expires_in"], headers["Cache-Control"]) == (
        200,
        "Bearer",
        3600,
        "no-store",
    )
    assert (await site.post(b"1", "tokens", {"Authorization": f"Bearer {sold['access_token']}"}))[
        0
    ] == 200
    assert (await site.post(b"2", "acme", {"Authorization": f"Bearer {sold['access_token']}"}))[
        0
    ] == 401
    assert (await site.post(b"2", "tokens", {"Authorization": "Bearer sec ret"}))[0] == 401


@pytest.mark.parametrize(
    ("carrier_id", "data", "expected", "error"),
    [
        (
            "tokens",
            {"grant_type": "client_credentials", "client_id": "id", "client_secret": "x"},
            401,
            "invalid_client",
        ),
        ("tokens", {}, 401, "invalid_client"),
        ("tokens", {"grant_type": "password"}, 400, "unsupported_grant_type"),
        ("tokens", {f"f{n}": "" for n in range(20)}, 400, None),
        ("tokens", {"client_id": "x" * 5000}, 413, None),
        ("acme", {"grant_type": "client_credentials"}, 404, None),
        ("nobody", {}, 404, None),
    ],
)
async def test_nobody_else_buys_one(
    serve: Any, carrier_id: str, data: dict[str, str], expected: int, error: str | None
) -> None:
    status, answer, _ = await buy(await serve(), carrier_id, data=data)
    assert (status, answer.get("error")) == (expected, error)


class Published:
    """Stands for the fetched key set."""

    def __init__(self, url: str, **_: Any) -> None:
        self.url = url

    async def key(self, key_id: str) -> Any:
        await asyncio.sleep(0)
        if key_id == "away":
            raise KeysUnavailableError
        return PRIVATE.public_key() if key_id == "k1" else None


async def test_a_signature_by_a_published_key_opens_the_door(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carrier_authenticator, "KeySet", Published)
    site = await serve(more={"webhook_key_sets": {"PUBLISHED": "https://carrier.example/jwks"}})
    now = str(int(time.time()))
    signature = base64.b64encode(PRIVATE.sign(f"{now}.1".encode(), PKCS1v15(), SHA256())).decode()
    signed = {"X-Sign": signature, "X-Time": now, "X-Key": "k1"}
    assert (await site.post(b"1", "published", signed))[0] == 200
    for wrong in ({"X-Key": "k2"}, {"X-Time": "later"}, {"X-Key": ""}, {"X-Sign": ""}):
        assert (await site.post(b"1", "published", signed | wrong))[0] == 401
    status, answer, headers = await site.post(b"1", "published", signed | {"X-Key": "away"})
    assert (status, answer["code"], "Retry-After" in headers) == (
        503,
        "signing_keys_unavailable",
        True,
    )
    long_ago = base64.b64encode(PRIVATE.sign(b"1700000000.1", PKCS1v15(), SHA256())).decode()
    status, answer, _ = await site.post(
        b"1", "published", signed | {"X-Sign": long_ago, "X-Time": "1700000000"}
    )
    assert status == 401
    assert "STATESVC_INGRESS_SIGNATURE_AGE_SECONDS_MAX" in answer["detail"]
    assert (await (await serve()).post(b"1", "published", signed))[0] == 401


# the secret of `acme`
TOKEN: Final = "new"


async def test_a_token_of_the_query_is_written_nowhere(
    serve: Any, written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = await serve()
    answers = [
        await site.post(b"1", headers={}, query=f"?token={SECRET}"),
        await site.post(
            b"1",
            headers={"Referer": f"https://x/?token={SECRET}"},
            query=f"?token={SECRET}&token={SECRET}",
        ),
        await site.post(b"1", "nobody", headers={}, query=f"?token={SECRET}"),
        await site.post(b"1", "acme/oauth/token", headers={}, query=f"?token={SECRET}"),
        await site.post(b"x" * 100_001, headers={}, query=f"?token={SECRET}"),
    ]
    assert (await site.post(b"2", headers={}, query=f"?token={TOKEN}&note={SECRET}"))[0] == 200

    async def break_off(*_: Any) -> Stored:
        raise RuntimeError(f"a defect, at ?token={SECRET}")

    monkeypatch.setattr(site.group_commit, "put", break_off)
    answers.append(await site.post(b"3", headers={}, query=f"?token={TOKEN}&note={SECRET}"))
    assert answers[-1][0] == 500
    stored = [str(row) for row in await site.rows("SELECT headers FROM statesvc.body")]
    logged = written.getvalue()
    assert "request_failed" in logged
    for text in (logged, site.telemetry.exposition().decode(), *stored, *map(str, answers)):
        assert SECRET not in text
        # a refusal names the parameter that the carrier sends, never a value
        assert not re.search(r"token=\w", text)


PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


class Transport:
    def __init__(self, remote: str) -> None:
        self._remote = remote

    def get_extra_info(self, name: str, default: object = None) -> object:
        return (self._remote, 1234) if name == "peername" else default


@pytest.mark.parametrize(
    ("remote", "forwarded", "expected"),
    [
        ("20.65.16.22", [], "20.65.16.22"),
        ("20.65.16.22", ["1.1.1.1"], "20.65.16.22"),
        ("10.0.0.1", ["20.65.16.22"], "20.65.16.22"),
        ("10.0.0.1", ["1.1.1.1, 20.65.16.22"], "20.65.16.22"),
        ("10.0.0.1", ["1.1.1.1", "20.65.16.22, 10.0.0.2"], "20.65.16.22"),
        ("10.0.0.1", ["20.65.16.22, fd00::1"], "20.65.16.22"),
        ("::ffff:10.0.0.1", ["::ffff:20.65.16.22"], "20.65.16.22"),
        ("10.0.0.1", ["20.65.16.22, unknown"], None),
        ("10.0.0.1", ["20.65.16.22:443"], "20.65.16.22"),
        ("10.0.0.1", ["1.1.1.1, 20.65.16.22:51234, 10.0.0.2:80"], "20.65.16.22"),
        ("10.0.0.1", ["[2001:db8::9]"], "2001:db8::9"),
        ("10.0.0.1", ["[2001:db8::9]:443"], "2001:db8::9"),
        ("10.0.0.1", ['"[2001:db8::9]:443"'], "2001:db8::9"),
        ("10.0.0.1", ['"20.65.16.22"'], "20.65.16.22"),
        ("10.0.0.1", ["[::ffff:20.65.16.22]:443, [fd00::1]:80"], "20.65.16.22"),
        ("10.0.0.1", ["2001:db8::9"], "2001:db8::9"),
        ("10.0.0.1", ["20.65.16.22:443x"], None),
        ("10.0.0.1", ["[20.65.16.22"], None),
        ("10.0.0.1", ['"20.65.16.22'], None),
        ("10.0.0.1", ["[2001:db8::9]443"], None),
        ("10.0.0.1", [""], None),
        ("10.0.0.1", [], "10.0.0.1"),
        ("", [], None),
    ],
)
def test_only_a_trusted_proxy_says_where_a_request_comes_from(
    remote: str, forwarded: list[str], expected: str | None
) -> None:
    headers = CIMultiDict([("X-Forwarded-For", value) for value in forwarded])
    request = make_mocked_request("POST", "/", headers=headers, transport=Transport(remote))
    assert sender_address(request, PROXIES) == (None if expected is None else ip_address(expected))
