"""Verify notifications (Standard Webhooks 1.0.0)."""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

# Clock that `webhook-timestamp` is compared with. The testing kit moves it with the service's
# clock.
clock: Callable[[], float] = time.time


class InvalidSignatureError(Exception):
    """The notification was not signed with this secret, or is older than the tolerance."""


class Headers(Protocol):
    """Headers as any framework has them, and as a mapping."""

    def items(self) -> Iterable[tuple[str, str]]:
        """Return the names and values."""


def verify(
    secret: str | Sequence[str],
    headers: Headers,
    body: bytes | str,
    *,
    tolerance_seconds: float = 300,
) -> dict[str, Any]:
    """Return a notification's JSON after checking its signature.

    Args:
        secret: `whsec_...`, as the subscription showed it once; several while a secret is rotated.
        headers: The request's headers, in any case.
        body: The raw body as it came: parsed and printed again it is another one.
        tolerance_seconds: How far `webhook-timestamp` may be from this machine's clock.

    Raises:
        InvalidSignatureError: Answer 401 and do nothing.
    """
    given = {name.lower(): value for name, value in headers.items()}
    try:
        message_id, stamp, signatures = (
            given[f"webhook-{name}"] for name in ("id", "timestamp", "signature")
        )
        age_seconds = abs(clock() - int(stamp))
    except KeyError as error:
        raise InvalidSignatureError(f"the header {error.args[0]} is missing") from None
    except ValueError:
        raise InvalidSignatureError("webhook-timestamp is not a number") from None
    if age_seconds > tolerance_seconds:
        raise InvalidSignatureError(
            f"webhook-timestamp is {age_seconds:.0f} s away from this machine's clock"
        )
    raw = body.encode() if isinstance(body, str) else body
    signed = f"{message_id}.{stamp}.".encode() + raw
    expected = [
        _signature(each, signed) for each in ([secret] if isinstance(secret, str) else secret)
    ]
    if not any(
        hmac.compare_digest(signature.encode(), each)
        for signature in signatures.split()
        for each in expected
    ):
        raise InvalidSignatureError("no signature is of this secret")
    parsed: dict[str, Any] = json.loads(raw)
    return parsed


def _signature(secret: str, signed: bytes) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        raise ValueError("the secret is not base64 (whsec_...)") from None
    return b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
