"""Authentication of webhooks. Pure, on the raw bytes, in constant time, with every live secret.

Values are compared byte for byte after decoding, so that upper-case hex is accepted, and a missing
header, an empty secret or bad encoding is refused.

A carrier that fetches a bearer token from us first (UPS) gets its expiry time and a keyed digest of
that, under the secret that it was issued for. So no process stores a token, any process recognises
it, and it ends with its secret. The expiry is by the wall clock of the process, like a
certificate's.
"""

import base64
import binascii
import hashlib
import hmac
import json
import math
import re
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, assert_never

from events.carriers.carrier import (
    Authentication,
    Basic,
    Carrier,
    ChosenAuthentication,
    FormFieldMd5,
    Hmac,
    OAuthToken,
    RsaSha256,
    Sha256Concat,
    Sha256InBody,
    SharedHeader,
    SignedWebToken,
    TimestampedHmac,
    UrlToken,
)
from events.parsing.forms import form_fields
from statesvc.ingress.signatures import SignatureAge, is_signed, is_web_token, public_key

# Headers (looked up without regard to case) or query parameters.
Strings = Mapping[str, str]
HeaderCheck = Callable[[Strings, Strings], bool]
BodyCheck = Callable[[Strings, bytes], bool]

_NOTHING: Final[Strings] = {}
_DECODER: Final = json.JSONDecoder()
# Each member is a step in Python; its content is read in C.
_MEMBERS_MAX: Final = 16
_BLANK: Final = re.compile(r"[ \t\r\n]*")
TOKEN_SECONDS: Final = 3600

_PURPOSE: Final = b"statesvc webhook token\x1f"


class Verifier:
    """The schemes of a carrier with its secrets, prepared once.

    Any scheme with any secret suffices.
    """

    def __init__(
        self,
        schemes: Sequence[Authentication],
        secrets: Sequence[str],
        *,
        now: Callable[[], float] = time.time,
        age_seconds_max: float = math.inf,
    ) -> None:
        self._now = now
        self.age = SignatureAge(age_seconds_max, now=now)
        # an empty secret would make the signature of an empty key valid
        live = tuple(secret for secret in secrets if secret)
        # anyone may know a public key: none is ever taken for a secret
        publishes_key = any(isinstance(scheme, RsaSha256) for scheme in schemes)
        self._public_keys = (
            [key for secret in live if (key := public_key(secret)) is not None]
            if publishes_key
            else []
        )
        live = tuple(secret for secret in live if not publishes_key or public_key(secret) is None)
        self._without_body: list[HeaderCheck] = []
        self._with_body: list[BodyCheck] = []
        self._signature_headers: list[str] = []
        self._signed_inside_max = 0
        for scheme in schemes:
            if self._public_keys if isinstance(scheme, RsaSha256) else live:
                self._prepare(scheme, live)
        self.reads_query = any(isinstance(scheme, UrlToken) for scheme in schemes)

    def without_body(self, headers: Strings, query: Strings) -> bool:
        """Return whether a scheme that does not sign the body accepts the request."""
        return any(check(headers, query) for check in self._without_body)

    def may_be_signed(self, headers: Strings, body_bytes: int | None = None) -> bool:
        """Return False where no signature was sent, so the body need not be read. `body_bytes`: its
        size, if known.
        """
        return (body_bytes or 0) < self._signed_inside_max or any(
            name in headers for name in self._signature_headers
        )

    def with_body(self, headers: Strings, body: bytes) -> bool:
        """Return whether a signature over the body fits."""
        return any(check(headers, body) for check in self._with_body)

    def _prepare(self, scheme: Authentication, secrets: tuple[str, ...]) -> None:
        keys = [_key(scheme, secret) for secret in secrets]
        match scheme:
            case SharedHeader() | Basic() | UrlToken() | SignedWebToken() | OAuthToken():
                self._without_body.append(_head_check(scheme, secrets, self._now))
            case Sha256InBody():
                self._with_body.append(partial(_fits_member, scheme, keys))
                # larger bodies need not be read: they are not looked into
                self._signed_inside_max = scheme.body_bytes_max + 1
            case RsaSha256():
                self._with_body.append(
                    lambda headers, body: is_signed(
                        scheme, self._public_keys, headers, body, self.age
                    )
                )
                self._signature_headers.append(scheme.signature_header)
            case Hmac():
                self._with_body.append(partial(_fits_hmac, scheme, keys))
                self._signature_headers.append(scheme.header)
            case Sha256Concat():
                self._with_body.append(partial(_fits_concat, scheme, keys))
                self._signature_headers.append(scheme.header)
            case FormFieldMd5():
                self._with_body.append(partial(_fits_form_field, scheme, keys))
                self._signature_headers.append(scheme.header)
            case TimestampedHmac():
                self._with_body.append(partial(_fits_stamped_hmac, scheme, keys, self.age))
                self._signature_headers.append(scheme.header)
            case _:
                assert_never(scheme)


def _key(scheme: Authentication, secret: str) -> bytes:
    is_nfkd = isinstance(scheme, Hmac) and scheme.nfkd
    return (unicodedata.normalize("NFKD", secret) if is_nfkd else secret).encode()


def _head_check(
    scheme: ChosenAuthentication | SignedWebToken | OAuthToken,
    secrets: tuple[str, ...],
    now: Callable[[], float],
) -> HeaderCheck:
    keys = [secret.encode() for secret in secrets]
    match scheme:
        case SharedHeader():
            return partial(_fits_header, scheme, keys)
        case Basic():
            return partial(_fits_basic, keys)
        case UrlToken():
            return lambda _headers, query: _equals_any(
                _bytes(query.get(scheme.parameter, "")), keys
            )
        case SignedWebToken():
            return lambda headers, _query: is_web_token(
                headers.get(scheme.header, "").strip(), keys=keys
            )
        case OAuthToken():
            return partial(_fits_issued_token, secrets, now)
        case _:
            assert_never(scheme)


def verify(
    carrier: Carrier,
    secrets: Sequence[str],
    *,
    headers: Strings,
    body: bytes,
    query: Strings = _NOTHING,
) -> bool:
    """Return whether the request is from the carrier. Without secrets: never."""
    verifier = Verifier(carrier.schemes(), secrets)
    return verifier.without_body(headers, query) or verifier.with_body(headers, body)


def _fits_hmac(scheme: Hmac, keys: Sequence[bytes], headers: Strings, body: bytes) -> bool:
    presented = headers.get(scheme.header, "").strip()
    # compared as it is: the prefix names the algorithm and is no secret
    if not presented.startswith(scheme.prefix):
        return False
    digest = _decoded(presented[len(scheme.prefix) :], scheme.encoding)
    return _equals_any(digest, [hmac.digest(key, body, scheme.algorithm) for key in keys])


def _fits_concat(
    scheme: Sha256Concat, keys: Sequence[bytes], headers: Strings, body: bytes
) -> bool:
    signed = body + scheme.separator.encode()
    digest = _decoded(headers.get(scheme.header, "").strip())
    return _equals_any(digest, [hashlib.sha256(signed + key).digest() for key in keys])


def _fits_form_field(
    scheme: FormFieldMd5, keys: Sequence[bytes], headers: Strings, body: bytes
) -> bool:
    signed = form_fields(body).get(scheme.field.encode())
    digest = _decoded(headers.get(scheme.header, "").strip(), "base64")
    return signed is not None and _equals_any(
        digest, [hashlib.md5(signed + key, usedforsecurity=False).digest() for key in keys]
    )


def _fits_member(
    scheme: Sha256InBody, keys: Sequence[bytes], _headers: Strings, body: bytes
) -> bool:
    members = (members_as_sent(body) if len(body) <= scheme.body_bytes_max else None) or {}
    if not {scheme.member, *scheme.signed} <= members.keys():
        return False
    values = [*(_value(members[name]) for name in scheme.signed), ""]
    signed = scheme.separator.join(values).encode("utf-8", "replace")
    digest = _decoded(_value(members[scheme.member]))
    return _equals_any(digest, [hashlib.sha256(signed + key).digest() for key in keys])


def _value(member: str) -> str:
    """Return the member's text, or its bytes as they stand in the body."""
    value: str = json.loads(member) if member.startswith('"') else member
    return value


def _fits_stamped_hmac(
    scheme: TimestampedHmac,
    keys: Sequence[bytes],
    age: SignatureAge,
    headers: Strings,
    body: bytes,
) -> bool:
    text = headers.get(scheme.header, "").strip()
    if scheme.stamp_header:
        stamp = headers.get(scheme.stamp_header, "").strip()
    else:
        fields = dict(part.strip().partition("=")[::2] for part in text.split(","))
        stamp, text = fields.get("t", ""), fields.get("v1", "")
    signed = _bytes(stamp) + b"." + body
    digest = _decoded(text, scheme.encoding)
    fits = _equals_any(digest, [hmac.digest(key, signed, "sha256") for key in keys])
    # the age last: a stranger must not learn from the answer how our clock stands
    return stamp != "" and fits and age.is_accepted(stamp)


def _fits_header(
    scheme: SharedHeader, keys: Sequence[bytes], headers: Strings, _query: Strings
) -> bool:
    presented, prefix = headers.get(scheme.header, ""), scheme.prefix.lower()
    return presented[: len(prefix)].lower() == prefix and _equals_any(
        _bytes(presented[len(prefix) :]), keys
    )


def _fits_issued_token(
    secrets: Sequence[str], now: Callable[[], float], headers: Strings, _query: Strings
) -> bool:
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    return scheme.lower() == "bearer" and is_live(token.strip(), secrets=secrets, now=now())


def _fits_basic(keys: Sequence[bytes], headers: Strings, _query: Strings) -> bool:
    scheme, _, encoded = headers.get("Authorization", "").partition(" ")
    return scheme.lower() == "basic" and _equals_any(_decoded(encoded.strip(), "base64"), keys)


def _decoded(text: str, encoding: str = "hex") -> bytes | None:
    try:
        if encoding == "base64":
            return base64.b64decode(_bytes(text), validate=True)
        return binascii.unhexlify(_bytes(text))
    except binascii.Error:
        return None


def _equals_any(presented: bytes | None, expected: Sequence[bytes]) -> bool:
    return presented is not None and any([hmac.compare_digest(presented, one) for one in expected])  # noqa: C419 - all are compared, whichever fits


def _bytes(text: str) -> bytes:
    # as aiohttp decoded it: bytes that are no UTF-8 come back as they were sent
    return text.encode("utf-8", "surrogateescape")


def members_as_sent(body: bytes) -> dict[str, str] | None:
    """Return the members of a JSON object as they stand in the body: a signature over one of them
    is over those bytes, not over a value.

    Member -> its text; None for a body that is no JSON object of UTF-8, is nested too deeply, names
    a member twice or has more than 16.
    """
    try:
        text = body.decode("utf-8-sig")
        return _members(text)
    except (UnicodeDecodeError, ValueError, RecursionError):
        return None


def _members(text: str) -> dict[str, str] | None:
    at = _expect(text, _skip(text, 0), "{")
    found: dict[str, str] = {}
    at = _skip(text, at)
    while text[at : at + 1] != "}":
        if found:
            at = _skip(text, _expect(text, at, ","))
        name, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _expect(text, _skip(text, at), ":"))
        # decoded to find its end; what is signed are the bytes
        _, end = _DECODER.raw_decode(text, at)
        # a name twice: the reader of the message might take the other one than we verified
        if not isinstance(name, str) or name in found or len(found) == _MEMBERS_MAX:
            return None
        found[name] = text[at:end]
        at = _skip(text, end)
    return found if _skip(text, at + 1) == len(text) else None


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return at if blank is None else blank.end()


def _expect(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise ValueError(f"no {sign} where one is due")
    return at + 1


def is_credentials(secret: str) -> bool:
    client_id, colon, client_secret = secret.partition(":")
    return bool(client_id and colon and client_secret)


def issue(client_id: str, client_secret: str, *, secrets: Sequence[str], now: float) -> str | None:
    """Issue a token for credentials that fit a live secret; None for others.

    `now`: seconds since 1970.
    """
    presented = f"{client_id}:{client_secret}".encode("utf-8", "surrogateescape")
    matching = [
        secret
        for secret in secrets
        if hmac.compare_digest(presented, secret.encode()) and is_credentials(secret)
    ]
    if not matching:
        return None
    end = str(int(now) + TOKEN_SECONDS)
    # the expiry is inside what is signed: it cannot be put off
    return f"{end}.{_digest(matching[0], end)}"


def is_live(token: str, *, secrets: Sequence[str], now: float) -> bool:
    """Return whether a live secret issued this token and it has not expired."""
    end, _, digest = token.partition(".")
    # isdigit alone takes digits of any script, which int would then read
    if not (token.isascii() and end.isdigit() and len(end) <= len("9999999999")):
        return False
    fits = [
        hmac.compare_digest(digest, _digest(secret, end))
        for secret in secrets
        if is_credentials(secret)
    ]
    return any(fits) and int(end) > now


def _digest(secret: str, end: str) -> str:
    return hmac.new(secret.encode(), _PURPOSE + end.encode(), "sha256").hexdigest()
