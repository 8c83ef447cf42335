"""Authentication of pushes: each scheme with each live secret, on the raw bytes, and nobody
without.
"""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import CertificateBuilder, Name, NameAttribute
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from events.carriers.carrier import (
    Authentication,
    Basic,
    Carrier,
    FormFieldMd5,
    Hmac,
    OAuthToken,
    RsaSha256,
    Sha256Concat,
    Sha256InBody,
    SharedHeader,
    TimestampedHmac,
    UrlToken,
)
from statesvc.ingress.authentication import TOKEN_SECONDS, Verifier, issue, members_as_sent, verify

BODY = b'{"n": 1}\n'


DATA = '{"number": "A\\u0031", "track":[1, 2]}'


def signed_inside(secret: str, data: str = DATA, event: str = "TRACKING_UPDATED") -> bytes:
    sign = hashlib.sha256(f"{event}/{data}/{secret}".encode()).hexdigest()
    return f'{{"sign" :"{sign}",\n "event":"TRACKING_UPDATED", "data": {data} }}'.encode()


def carrier(*schemes: Authentication) -> Carrier:
    return Carrier(
        carrier_id="acme",
        name="Acme",
        normalizers={},
        stable="1",
        formats=("json",),
        authentication=schemes,
    )


def accepts(
    *schemes: Authentication,
    secrets: tuple[str, ...] = ("old", "new"),
    body: bytes = BODY,
    query: Any = None,
    **headers: str,
) -> bool:
    named = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
    return verify(carrier(*schemes), secrets, headers=named, body=body, query=query or {})


@pytest.mark.parametrize("secret", ["old", "new"])
@pytest.mark.parametrize("algorithm", ["sha256", "sha1", "sha512"])
def test_an_hmac_fits_with_either_secret(secret: str, algorithm: Any) -> None:
    digest = hmac.new(secret.encode(), BODY, algorithm)
    hexed, based = digest.hexdigest(), base64.b64encode(digest.digest()).decode()
    assert accepts(Hmac(header="X-Sign", algorithm=algorithm), x_sign=hexed)
    assert accepts(Hmac(header="X-Sign", algorithm=algorithm), x_sign=hexed.upper())
    assert accepts(Hmac(header="X-Sign", algorithm=algorithm, prefix="v="), x_sign=f"v={hexed}")
    assert accepts(Hmac(header="X-Sign", algorithm=algorithm, encoding="base64"), x_sign=based)


@pytest.mark.parametrize(
    "presented",
    [
        "",
        "v=",
        "zz",
        "é",
        "00" * 32,
        hashlib.sha256(BODY).hexdigest(),
        hmac.new(b"", BODY, "sha256").hexdigest(),
    ],
)
def test_another_hmac_does_not(presented: str) -> None:
    assert not accepts(Hmac(header="X-Sign"), x_sign=presented)
    assert not accepts(Hmac(header="X-Sign", encoding="base64"), x_sign=presented)
    assert not accepts(Hmac(header="X-Sign", prefix="v="), x_sign=presented)


@pytest.mark.parametrize("secret", ["old", "new"])
def test_a_plain_hash_over_body_and_secret_fits_with_either_secret(secret: str) -> None:
    signed = hashlib.sha256(BODY + b"/" + secret.encode()).hexdigest()
    assert accepts(Sha256Concat(header="sign"), sign=signed)
    assert accepts(Sha256Concat(header="sign"), sign=signed.upper())
    assert not accepts(Sha256Concat(header="sign"), body=BODY.strip(), sign=signed)


@pytest.mark.parametrize(
    "presented",
    ["", "zz", "é", hashlib.sha256(BODY).hexdigest(), hashlib.sha256(BODY + b"/").hexdigest()],
)
def test_another_plain_hash_does_not(presented: str) -> None:
    assert not accepts(Sha256Concat(header="sign"), sign=presented)


@pytest.mark.parametrize("secret", ["old", "new"])
def test_a_hash_over_a_form_field_and_secret_fits_with_either_secret(secret: str) -> None:
    scheme, body = FormFieldMd5(header="digest", field="f"), b"a=1&f=%7B%22n%22%3A+1%7D&f=2"
    signed = base64.b64encode(
        hashlib.md5(b'{"n": 1}' + secret.encode(), usedforsecurity=False).digest()
    ).decode()
    assert accepts(scheme, body=body, digest=signed)
    assert not accepts(scheme, body=body.replace(b"f=%7B", b"f=2&f=%7B", 1), digest=signed), (
        "only the field that is read is signed"
    )
    for other in (b"", b"f", b'{"n": 1}', b"g=%7B%22n%22%3A+1%7D", b"f=%7B%22n%22%3A+2%7D"):
        assert not accepts(scheme, body=other, digest=signed)
    for presented in (
        "",
        "zz",
        "é",
        signed[:-4],
        hashlib.md5(b'{"n": 1}' + secret.encode(), usedforsecurity=False).hexdigest(),
    ):
        assert not accepts(scheme, body=body, digest=presented)


@pytest.mark.parametrize("secret", ["old", "new"])
def test_a_hash_inside_the_body_is_over_the_members_as_they_were_sent(secret: str) -> None:
    assert accepts(Sha256InBody(), body=signed_inside(secret))
    assert accepts(Sha256InBody(), body=b"\xef\xbb\xbf" + signed_inside(secret))
    assert Verifier((Sha256InBody(),), (secret,)).may_be_signed(CIMultiDict())


@pytest.mark.parametrize(
    "body",
    [
        signed_inside("other"),
        signed_inside("new", event="TRACKING_STOPPED"),
        signed_inside("new").replace(b"[1, 2]", b"[1,2]"),
        signed_inside("new").replace(b'"data"', b'"data":1,"data"'),
        signed_inside("new") + b"}",
        signed_inside("new")[:-1],
        b"[1]",
        b'{"sign": 1, "event": "a", "data": 2}',
        b'{"sign": "zz", "event": "a", "data": 2}',
        b'{"event": "a", "data": 2}',
        b"{" * 100_000,
        b'{"sign":' + b"[" * 100_000,
        b"\xff\xfe",
        b"",
    ],
)
def test_another_hash_inside_the_body_does_not(body: bytes) -> None:
    assert not accepts(Sha256InBody(), body=body)


def test_a_bought_token_fits_until_its_end_and_as_long_as_its_secret_lives() -> None:
    clock = [1_700_000_000.0]
    secrets = ("static", "id:old", "id:new")
    for credentials in ("old", "new"):
        token = issue("id", credentials, secrets=secrets, now=clock[0])
        assert token is not None
        headers = CIMultiDict({"Authorization": f"bearer {token}"})
        verifier = Verifier((OAuthToken(),), secrets, now=lambda: clock[0])
        assert verifier.without_body(headers, {})
        assert not Verifier(
            (OAuthToken(),), ("static", "id:other"), now=lambda: clock[0]
        ).without_body(headers, {})
        end, _, digest = token.partition(".")
        for wrong in (
            f"{int(end) + 1}.{digest}",
            f"{end}.",
            f"{end}.\u00e9",
            digest,
            "",
            "\u0661.x",
            f"{'9' * 400}.{digest}",
        ):
            assert not verifier.without_body(CIMultiDict({"Authorization": f"Bearer {wrong}"}), {})
        clock[0] += TOKEN_SECONDS
        assert not verifier.without_body(headers, {})


@pytest.mark.parametrize(
    ("client_id", "client_secret"),
    [
        ("id", "x"),
        ("", ""),
        ("static", ""),
        ("id", "old,id:new"),
        ("id:old", ""),
        ("id", ""),
        ("", "x"),
    ],
)
def test_other_credentials_buy_nothing(client_id: str, client_secret: str) -> None:
    assert issue(client_id, client_secret, secrets=("static", "id:old", "id:", ":x"), now=0) is None


@pytest.mark.parametrize("secret", ["old", "new"])
def test_an_hmac_over_timestamp_and_body_fits_with_either_secret(secret: str) -> None:
    digest = hmac.new(secret.encode(), b"1700000000." + BODY, "sha256").hexdigest()
    scheme = TimestampedHmac(header="X-Sign")
    assert accepts(scheme, x_sign=f"t=1700000000,v1={digest}")
    assert accepts(scheme, x_sign=f"v1={digest.upper()}, t=1700000000")
    for wrong in (
        digest,
        f"t=1700000001,v1={digest}",
        f"v1={digest}",
        "t=1700000000",
        "t=1700000000,v1=zz",
        "t=1700000000,v1=é",
        "",
    ):
        assert not accepts(scheme, x_sign=wrong)
    assert not accepts(scheme, body=BODY.strip(), x_sign=f"t=1700000000,v1={digest}")


def test_an_rsa_signature_over_timestamp_and_body_fits_the_public_key() -> None:
    private = generate_private_key(public_exponent=65537, key_size=2048)
    pem = (
        private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    )
    one_line = base64.b64encode(
        private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    ).decode()
    signature = base64.b64encode(
        private.sign(b"2026-03-01T00:00:00Z." + BODY, PKCS1v15(), SHA256())
    ).decode()
    scheme = RsaSha256(signature_header="X-Sign", timestamp_header="X-Time", key_id_header="X-Key")

    for secrets in ((pem,), ("no key", one_line)):
        assert accepts(scheme, secrets=secrets, x_sign=signature, x_time="2026-03-01T00:00:00Z")
    for time, signed, body in (
        ("2026-03-01T00:00:01Z", signature, BODY),
        ("", signature, BODY),
        ("2026-03-01T00:00:00Z", "", BODY),
        ("2026-03-01T00:00:00Z", "é", BODY),
        ("2026-03-01T00:00:00Z", signature, BODY.strip()),
    ):
        assert not accepts(scheme, secrets=(pem,), body=body, x_sign=signed, x_time=time)
    assert not accepts(scheme, secrets=("no key",), x_sign=signature, x_time="2026-03-01T00:00:00Z")


@pytest.mark.parametrize(
    ("age", "accepted"), [(0, True), (7200, True), (7201, False), (-300, True), (-301, False)]
)
def test_a_signature_is_as_old_as_its_stamp(age: int, *, accepted: bool) -> None:
    for stamp, made_at in (("1700000000", 1_700_000_000), ("1700000000123", 1_700_000_000.123)):
        signed = hmac.new(b"s", f"{stamp}.".encode() + BODY, "sha256").hexdigest()
        verifier = Verifier(
            (TimestampedHmac(header="X-Sign"),),
            ("s",),
            now=partial(float, made_at + age),
            age_seconds_max=7200,
        )
        assert (
            verifier.with_body(CIMultiDict({"X-Sign": f"t={stamp},v1={signed}"}), BODY) is accepted
        )


@pytest.mark.parametrize(
    "stamp",
    [
        "-1",
        "1.5",
        "1e9",
        " 1",
        pytest.param("9" * 5000, id="too long"),
        "\u0661",
        "2001-03-01",
        "2001-03-01T00:00:00",
        "x",
    ],
)
def test_a_signed_stamp_that_is_no_time_of_ours_is_refused(stamp: str) -> None:
    signed = hmac.new(b"s", stamp.encode() + b"." + BODY, "sha256").hexdigest()
    scheme = TimestampedHmac(header="X-Sign", stamp_header="X-Time")
    verifier = Verifier((scheme,), ("s",), now=lambda: 1_700_000_000.0, age_seconds_max=1e9)
    assert not verifier.with_body(CIMultiDict({"X-Sign": signed, "X-Time": stamp}), BODY)


def test_a_certificate_stands_for_its_key_and_the_body_may_be_signed_alone() -> None:
    private = generate_private_key(public_exponent=65537, key_size=2048)
    name = Name([NameAttribute(NameOID.COMMON_NAME, "carrier")])
    start = datetime(2026, 1, 1, tzinfo=UTC)
    built = CertificateBuilder(
        name, name, private.public_key(), 1, start, start + timedelta(days=1)
    ).sign(private, SHA256())
    pem = built.public_bytes(Encoding.PEM).decode()
    one_line = base64.b64encode(built.public_bytes(Encoding.DER)).decode()
    signature = base64.b64encode(private.sign(BODY, PKCS1v15(), SHA256())).decode()
    for secret in (pem, one_line):
        assert accepts(RsaSha256(signature_header="X-Sign"), secrets=(secret,), x_sign=signature)
        assert not accepts(
            RsaSha256(signature_header="X-Sign"),
            secrets=(secret,),
            body=BODY.strip(),
            x_sign=signature,
        )
        assert not accepts(
            RsaSha256(signature_header="X-Sign"),
            UrlToken(),
            secrets=(secret,),
            query={"token": secret},
        )


def test_a_public_key_is_never_taken_for_a_secret() -> None:
    private = generate_private_key(public_exponent=65537, key_size=2048)
    one_line = base64.b64encode(
        private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    ).decode()
    rsa = RsaSha256(signature_header="X-Sign", timestamp_header="X-Time", key_id_header="X-Key")
    schemes = (rsa, SharedHeader(header="X-Secret"), UrlToken(), Hmac(header="X-Mac"))
    mac = hmac.new(one_line.encode(), BODY, "sha256").hexdigest()
    assert not accepts(
        *schemes, secrets=(one_line,), x_secret=one_line, x_mac=mac, query={"token": one_line}
    )
    assert accepts(*schemes, secrets=(one_line, "s"), x_secret="s")


def test_a_shared_header_fits_whole() -> None:
    assert accepts(SharedHeader(header="credential"), credential="new")
    assert accepts(
        SharedHeader(header="Authorization", prefix="Bearer "), authorization="bearer old"
    )
    for wrong in ("", "ne", "newer", "Bearer new", "n\udce9w"):
        assert not accepts(SharedHeader(header="credential"), credential=wrong)
    assert not accepts(SharedHeader(header="Authorization", prefix="Bearer "), authorization="new")


def test_basic_is_user_and_password() -> None:
    fits = base64.b64encode(b"carrier:pass:word").decode()
    assert accepts(Basic(), secrets=("carrier:pass:word",), authorization=f"Basic {fits}")
    for wrong in (
        f"Bearer {fits}",
        "Basic ",
        "Basic !",
        "Basic " + base64.b64encode(b"carrier:").decode(),
    ):
        assert not accepts(Basic(), secrets=("carrier:pass:word",), authorization=wrong)


@given(st.text(max_size=8))
def test_without_a_secret_nothing_fits(presented: str) -> None:
    schemes = (Hmac(header="X-Sign"), SharedHeader(header="X-Key"), Basic(), UrlToken())
    empty = hmac.new(b"", BODY, "sha256").hexdigest()
    for secrets in ((), ("",)):
        headers = CIMultiDict({"X-Sign": empty, "X-Key": "", "Authorization": f"Basic {presented}"})
        assert not verify(
            carrier(*schemes), secrets, headers=headers, body=BODY, query={"token": ""}
        )


def test_a_body_signed_inside_is_read_in_few_steps_and_within_a_bound() -> None:
    scheme = Sha256InBody(body_bytes_max=100)
    verifier = Verifier((scheme,), ("s",))
    assert verifier.may_be_signed(CIMultiDict(), 100)
    assert not verifier.may_be_signed(CIMultiDict(), 101)
    members = ",".join(f'"{place}":1' for place in range(17))
    assert members_as_sent(f"{{{members}}}".encode()) is None
    assert len(members_as_sent(f"{{{members.rpartition(',')[0]}}}".encode()) or {}) == 16
    signed = {"event": "E", "data": "x" * 60}
    body = json.dumps(
        {**signed, "sign": hashlib.sha256(f"E/{signed['data']}/s".encode()).hexdigest()}
    ).encode()
    assert len(body) > scheme.body_bytes_max
    assert not verifier.with_body(CIMultiDict(), body)
    assert Verifier((Sha256InBody(),), ("s",)).with_body(CIMultiDict(), body)
