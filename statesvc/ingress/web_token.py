"""JSON web tokens (RFC 7519) that a carrier signs with a secret of ours: HS256 alone, whatever the
token says of itself.
"""

import warnings
from collections.abc import Sequence
from typing import Final

import jwt

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
    return any(_is_signed_by(key, token) for key in keys)


def _is_signed_by(key: bytes, token: str) -> bool:
    try:
        jwt.decode(token, key, algorithms=["HS256"], leeway=LEEWAY_SECONDS, options=_OPTIONS)
    except (jwt.InvalidTokenError, OverflowError):
        return False
    return True
