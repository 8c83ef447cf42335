"""Short-lived signed rights as text: a purpose and an expiry. Not stored.

A token is a JSON web token (RFC 7519, HS256). It is good for a single purpose, its `aud`; it names
the API key that made it, so it ends with that key, too. Its claims are readable by its bearer, so
they hold no secret.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import jwt

# With the rest of its call it fits into the first line of a request: 8190 bytes at most.
TOKEN_CHARS_MAX: Final = 4096
_ALGORITHM: Final = "HS256"
_OURS: Final = ("exp", "aud")


class TokenRefusedError(ValueError):
    """The text is no token of ours, is for another purpose, was changed, or has expired."""


class TokenSigner:
    """Sign and read tokens. `key`: 32 bytes that all processes share (`Keyring.token_key`)."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, purpose: str, claims: Mapping[str, Any], *, expires_at: datetime) -> str:
        return jwt.encode({**claims, "exp": expires_at, "aud": purpose}, self._key, _ALGORITHM)

    def read(self, purpose: str, token: str) -> Mapping[str, Any]:
        """Return the claims of a token. Raises TokenRefusedError."""
        if len(token) > TOKEN_CHARS_MAX or "=" in token:
            raise TokenRefusedError("it has not the form of a token")
        try:
            claims = jwt.decode(
                token,
                self._key,
                algorithms=[_ALGORITHM],
                audience=purpose,
                options={"require": list(_OURS)},
            )
        except jwt.ExpiredSignatureError as error:
            raise TokenRefusedError("it has expired") from error
        except jwt.InvalidTokenError as error:
            raise TokenRefusedError(
                "it was not signed here for this purpose, or was changed"
            ) from error
        return {name: value for name, value in claims.items() if name not in _OURS}
