"""Signatures of Standard Webhooks 1.0.0: symmetric (`v1`, HMAC-SHA256) and asymmetric (`v1a`, Ed25519). Pure."""

import base64
import hmac
from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SigningKey = bytes | Ed25519PrivateKey
"""A shared secret, or the secret half of a pair."""


def sign(keys: Sequence[SigningKey], *, webhook_id: str, timestamp: int, body: bytes) -> str:
    """The `webhook-signature` header: one signature for each live key, so that a rotation breaks nobody.

    `timestamp`: Unix seconds of the attempt, which the receiver compares with its own clock.
    """
    content = f"{webhook_id}.{timestamp}.".encode() + body
    return " ".join(_signature(key, content) for key in keys)


def signed_headers(keys: Sequence[SigningKey], *, webhook_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """All headers of a delivery."""
    return {
        "content-type": "application/json",
        "user-agent": "statesvc-notifier",
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(keys, webhook_id=webhook_id, timestamp=timestamp, body=body),
    }


def _signature(key: SigningKey, content: bytes) -> str:
    match key:
        case bytes():
            return f"v1,{base64.b64encode(hmac.digest(key, content, 'sha256')).decode()}"
        case _:
            return f"v1a,{base64.b64encode(key.sign(content)).decode()}"
