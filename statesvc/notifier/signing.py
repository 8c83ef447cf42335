"""Signatures of Standard Webhooks 1.0.0 (symmetric, `v1`). Pure."""

import base64
import hmac
from collections.abc import Sequence


def sign(secrets: Sequence[bytes], *, webhook_id: str, timestamp: int, body: bytes) -> str:
    """The `webhook-signature` header: one `v1,<base64>` for each live secret, so that a rotation breaks nobody.

    `timestamp`: Unix seconds of the attempt, which the receiver compares with its own clock.
    """
    content = f"{webhook_id}.{timestamp}.".encode() + body
    return " ".join(f"v1,{base64.b64encode(hmac.digest(secret, content, 'sha256')).decode()}" for secret in secrets)


def signed_headers(secrets: Sequence[bytes], *, webhook_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """All headers of a delivery."""
    return {
        "content-type": "application/json",
        "user-agent": "statesvc-notifier",
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(secrets, webhook_id=webhook_id, timestamp=timestamp, body=body),
    }
