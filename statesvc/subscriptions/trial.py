"""A test of a subscription: one signed message, once. Counts nowhere, disables nothing, is retried never."""

import secrets
from datetime import datetime
from uuid import UUID

import orjson

from events.entry import rfc3339
from statesvc.notifier.sending import Answer, Sender
from statesvc.notifier.signing import SigningKey, signed_headers

TYPE = "subscription.test"


async def try_out(sender: Sender, *, subscription_id: UUID, url: str, keys: tuple[SigningKey, ...], now: datetime) -> tuple[str, Answer]:
    """Sends it; returns its webhook-id and what came back."""
    webhook_id = f"t1-{secrets.token_hex(16)}"
    body = orjson.dumps({"type": TYPE, "timestamp": rfc3339(now), "data": {"subscription_id": str(subscription_id)}})
    headers = signed_headers(keys, webhook_id=webhook_id, timestamp=int(now.timestamp()), body=body)
    return webhook_id, await sender.send(url, headers=headers, body=body)
