"""Signatures of notifications. Pure.

Standard Webhooks 1.0.0: symmetric (`v1`, HMAC-SHA256) and asymmetric (`v1a`, Ed25519). On request
also an HMAC-SHA256 of the body in a header of its own, as Shopify, GitHub and Stripe send it.
"""

import base64
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# A shared secret, or the secret half of a pair.
SigningKey = bytes | Ed25519PrivateKey
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - what every secret begins with
TIMESTAMP: Final = "{timestamp}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OlderSignature:
    """An additional signature in another sender's form. Its key is the secret's text with `whsec_`.

    A `prefix` with `{timestamp}` states the time of the attempt; the signed text is then
    `timestamp.body`.
    """

    header: str
    encoding: Literal["hex", "base64"]
    prefix: str = ""

    def signed(self, keys: Sequence[bytes], *, timestamp: int, body: bytes) -> str:
        """Return the header's value. `keys`: current first.

        During a rotation a header with one signature uses the former key, which the
        receiver has; a header with a time takes a list, so it gets both.
        """
        before, marker, behind = self.prefix.partition(TIMESTAMP)
        if not marker:
            return self.prefix + self._mac(keys[-1], body)
        signed = f"{timestamp}.".encode() + body
        return f"{before}{timestamp}" + "".join(behind + self._mac(key, signed) for key in keys)

    def _mac(self, key: bytes, content: bytes) -> str:
        mac = hmac.digest(shared_text(key).encode(), content, "sha256")
        return mac.hex() if self.encoding == "hex" else base64.b64encode(mac).decode()


def shared_text(key: bytes) -> str:
    return SECRET_PREFIX + base64.b64encode(key).decode()


def sign(keys: Sequence[SigningKey], *, webhook_id: str, timestamp: int, body: bytes) -> str:
    """Return the `webhook-signature` header, with a signature for each live key.

    `timestamp`: Unix seconds of the attempt, which the receiver compares with its own clock.
    """
    # Standard Webhooks 1.0.0: id, time and body, so none of them can be taken from another message
    content = f"{webhook_id}.{timestamp}.".encode() + body
    # during a rotation one of each key: the receiver accepts the list if any fits
    return " ".join(_signature(key, content) for key in keys)


def signed_headers(
    keys: Sequence[SigningKey],
    *,
    webhook_id: str,
    timestamp: int,
    body: bytes,
    older: OlderSignature | None = None,
) -> dict[str, str]:
    headers = {
        "content-type": "application/json",
        "user-agent": "statesvc-notifier",
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(keys, webhook_id=webhook_id, timestamp=timestamp, body=body),
    }
    shared = [key for key in keys if isinstance(key, bytes)]
    if older is not None and shared:
        headers[older.header] = older.signed(shared, timestamp=timestamp, body=body)
    return headers


def _signature(key: SigningKey, content: bytes) -> str:
    match key:
        case bytes():
            return f"v1,{base64.b64encode(hmac.digest(key, content, 'sha256')).decode()}"
        case _:
            return f"v1a,{base64.b64encode(key.sign(content)).decode()}"
