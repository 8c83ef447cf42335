"""Short-lived bearer tokens for carriers that fetch one from us before they push (UPS). Pure.

A token is its end and a keyed digest of that under the secret that it was issued for. So no process stores it, any process
recognises it, and it dies with its secret. Its end is by the wall clock of the process, like a certificate's.
"""

import hmac
from collections.abc import Sequence
from typing import Final

TOKEN_SECONDS: Final = 3600

_PURPOSE: Final = b"statesvc webhook token\x1f"


def is_credentials(secret: str) -> bool:
    """Whether a carrier's secret is `client_id:client_secret`."""
    client_id, colon, client_secret = secret.partition(":")
    return bool(client_id and colon and client_secret)


def issue(client_id: str, client_secret: str, *, secrets: Sequence[str], now: float) -> str | None:
    """A token for credentials that fit one of the live `secrets`; None for others. `now`: seconds since 1970."""
    presented = f"{client_id}:{client_secret}".encode("utf-8", "surrogateescape")
    matching = [secret for secret in secrets if hmac.compare_digest(presented, secret.encode()) and is_credentials(secret)]
    if not matching:
        return None
    end = str(int(now) + TOKEN_SECONDS)
    return f"{end}.{_digest(matching[0], end)}"


def is_live(token: str, *, secrets: Sequence[str], now: float) -> bool:
    """Whether one of the live `secrets` issued this token, and its end is ahead."""
    end, _, digest = token.partition(".")
    if not (token.isascii() and end.isdigit() and len(end) <= len("9999999999")):
        return False
    fits = [hmac.compare_digest(digest, _digest(secret, end)) for secret in secrets if is_credentials(secret)]
    return any(fits) and int(end) > now


def _digest(secret: str, end: str) -> str:
    return hmac.new(secret.encode(), _PURPOSE + end.encode(), "sha256").hexdigest()
