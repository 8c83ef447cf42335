"""Short-lived rights that are handed out as text: what the bearer may do, until when, signed. Nothing of it is stored.

A token is good for one purpose; it names the API key that made it, so it ends with that key, too. Form: `claims.signature`, both base64url;
the claims are readable by anyone who has the token, so they hold nothing secret.
"""

import base64
import binascii
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import orjson

TOKEN_CHARS_MAX: Final = 4096
"""With all else that its call takes it fits into the first line of a request, which has 8190 bytes at most."""
_EXPIRES: Final = "exp"


class TokenRefusedError(ValueError):
    """The text is no token of ours, is for another purpose, was changed, or has expired."""


class TokenSigner:
    """`key`: 32 bytes that all processes share (`Keyring.token_key`)."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, purpose: str, claims: Mapping[str, Any], *, expires_at: datetime) -> str:
        """The token. `claims` are JSON values."""
        content = orjson.dumps({**claims, _EXPIRES: expires_at.timestamp()})
        return f"{_text(content)}.{_text(self._signature(purpose, content))}"

    def read(self, purpose: str, token: str) -> Mapping[str, Any]:
        """The claims. Raises TokenRefusedError."""
        content, signature = _parts(token)
        if not hmac.compare_digest(signature, self._signature(purpose, content)):
            raise TokenRefusedError("it was not signed here for this purpose, or was changed")
        claims: dict[str, Any] = orjson.loads(content)
        if claims.pop(_EXPIRES) <= datetime.now(UTC).timestamp():
            raise TokenRefusedError("it has expired")
        return claims

    def _signature(self, purpose: str, content: bytes) -> bytes:
        return hmac.digest(self._key, purpose.encode() + b"\x1f" + content, "sha256")


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _parts(token: str) -> tuple[bytes, bytes]:
    if len(token) <= TOKEN_CHARS_MAX:
        content, dot, signature = token.partition(".")
        try:
            # only one spelling of a token is good: base64 itself ignores the bits that pad the last character
            decoded = _bytes(content), _bytes(signature)
        except (UnicodeEncodeError, binascii.Error):
            decoded = b"", b""
        if dot and (_text(decoded[0]), _text(decoded[1])) == (content, signature):
            return decoded
    raise TokenRefusedError("it has not the form of a token")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
