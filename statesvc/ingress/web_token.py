"""JSON web tokens (RFC 7515, 7519) of one kind: HS256 with a secret of ours. Written here, since we use no more of the standard.

The signature is checked first, with our algorithm; what the token says of itself can only refuse it: another `alg` (so also `none`), an
extension that must be understood (`crit`), an end (`exp`) that is over, a beginning (`nbf`) to come.
"""

import base64
import binascii
import hmac
import json
import math
import re
from collections.abc import Sequence
from typing import Any, Final

LEEWAY_SECONDS: Final = 60
TOKEN_CHARS_MAX: Final = 8192
_PARTS: Final = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")


def is_web_token(token: str, *, keys: Sequence[bytes], now: float) -> bool:
    """Whether one of the keys signed this token and it is in force. `now`: seconds since 1970."""
    parts = _PARTS.fullmatch(token) if len(token) <= TOKEN_CHARS_MAX else None
    if parts is None:
        return False
    header, claims, signature = parts.groups()
    presented = _decoded(signature) or b""
    signed = f"{header}.{claims}".encode("ascii")
    fits = [hmac.compare_digest(presented, hmac.digest(key, signed, "sha256")) for key in keys]
    return any(fits) and _is_hs256(_object(header)) and _is_in_force(_object(claims), now)


def _is_hs256(header: dict[str, Any] | None) -> bool:
    return header is not None and header.get("alg") == "HS256" and "crit" not in header


def _is_in_force(claims: dict[str, Any] | None, now: float) -> bool:
    if claims is None:
        return False
    end, beginning = claims.get("exp", math.inf), claims.get("nbf", -math.inf)
    return _is_time(end) and _is_time(beginning) and beginning - LEEWAY_SECONDS <= now < end + LEEWAY_SECONDS


def _is_time(value: object) -> bool:
    return type(value) in {int, float}


def _object(part: str) -> dict[str, Any] | None:
    decoded = _decoded(part)
    try:
        value = json.loads(decoded) if decoded is not None else None
    except (ValueError, RecursionError):
        return None
    return value if type(value) is dict else None


def _decoded(part: str) -> bytes | None:
    """From base64url without padding; None if it is not in canonical form."""
    try:
        decoded = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except binascii.Error:
        return None
    return decoded if base64.urlsafe_b64encode(decoded).rstrip(b"=") == part.encode("ascii") else None
