"""Signatures that carriers make with an RSA key or as a web token, and how old one may be.

The operator sets an RSA key, as key or certificate, or the carrier publishes it (`jwks`). A JSON
web token (RFC 7519) is signed with a secret of ours: HS256 alone, whatever the token says of itself.
A stamp is checked only after the signature over it fits. Its bound is wide: carriers do not document
whether they stamp a retry again, and for some a refusal is final. A replayed body has no effect,
while a refused scan would be lost.
"""

import base64
import binascii
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

import jwt
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key
from cryptography.x509 import load_der_x509_certificate

from events.carriers.carrier import RsaSha256

# Bound of how far a carrier's clock may be ahead of ours: ShipEngine's documents name five
# minutes.
AHEAD_SECONDS_MAX: Final = 300.0
_MILLISECONDS_FROM: Final = 10**11
_DIGITS_MAX: Final = 15


class SignatureAge:
    """The bound, by the wall clock of this process."""

    def __init__(self, seconds_max: float, *, now: Callable[[], float] = time.time) -> None:
        self._seconds_max = seconds_max
        self._now = now

    def is_accepted(self, stamp: str) -> bool:
        """Return False for a stamp that is too old, in the future, or not a time."""
        made_at = seconds_since_1970(stamp)
        if made_at is None:
            return False
        return -AHEAD_SECONDS_MAX <= self._now() - made_at <= self._seconds_max


def seconds_since_1970(stamp: str) -> float | None:
    """Parse a stamp in seconds, in milliseconds, or in RFC 3339 with its offset; None for
    another.
    """
    if stamp.isascii() and stamp.isdigit():
        if len(stamp) > _DIGITS_MAX:
            return None
        number = int(stamp)
        return number / 1000 if number >= _MILLISECONDS_FROM else float(number)
    try:
        instant = datetime.fromisoformat(stamp)
        return instant.timestamp() if instant.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def is_signed(
    scheme: RsaSha256,
    keys: Sequence[RSAPublicKey],
    headers: Mapping[str, str],
    body: bytes,
    age: SignatureAge,
) -> bool:
    """Return whether a key made the signature, recently enough."""
    stamp = headers.get(scheme.timestamp_header, "").strip() if scheme.timestamp_header else None
    if stamp == "":
        return False
    try:
        signature = base64.b64decode(
            _bytes(headers.get(scheme.signature_header, "").strip()), validate=True
        )
    except binascii.Error:
        return False
    signed = body if stamp is None else _bytes(stamp) + b"." + body
    return any(_is_signed_by(key, signature, signed) for key in keys) and (
        stamp is None or age.is_accepted(stamp)
    )


def public_key(secret: str) -> RSAPublicKey | None:
    """Return the RSA key of a key or certificate text.

    None for another text, which then fits no signature.
    """
    lines = (line.strip() for line in secret.strip().splitlines())
    try:
        der = base64.b64decode(
            _bytes("".join(line for line in lines if not line.startswith("-----")))
        )
        key = _certified_key(der) or load_der_public_key(der)
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, RSAPublicKey) else None


def _certified_key(der: bytes) -> CertificatePublicKeyTypes | None:
    """Return the certified key. The operator who chose it answers for its validity."""
    try:
        return load_der_x509_certificate(der).public_key()
    except ValueError:
        return None


def _is_signed_by(key: RSAPublicKey, signature: bytes, signed: bytes) -> bool:
    try:
        key.verify(signature, signed, PKCS1v15(), SHA256())
    except InvalidSignature:
        return False
    return True


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


LEEWAY_SECONDS: Final = 60
TOKEN_CHARS_MAX: Final = 8192
_OPTIONS: Final[jwt.types.Options] = {
    "verify_aud": False,
    "verify_iat": False,
    "verify_iss": False,
    "verify_jti": False,
    "verify_sub": False,
}
# how long a carrier's secret is, the carrier says
warnings.filterwarnings("ignore", category=jwt.InsecureKeyLengthWarning)


def is_web_token(token: str, *, keys: Sequence[bytes]) -> bool:
    """Return whether a key signed this token and it is in force now."""
    if len(token) > TOKEN_CHARS_MAX or "=" in token:
        return False
    return any(_is_token_of(key, token) for key in keys)


def _is_token_of(key: bytes, token: str) -> bool:
    try:
        jwt.decode(token, key, algorithms=["HS256"], leeway=LEEWAY_SECONDS, options=_OPTIONS)
    except (jwt.InvalidTokenError, OverflowError):
        return False
    return True
