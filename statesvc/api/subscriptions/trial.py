"""A test of a subscription: one signed message, once. Counts nowhere, disables nothing, is retried never."""

import secrets
from datetime import datetime
from uuid import UUID

import orjson

from events.entry import rfc3339
from statesvc.delivery.outcome import Answer
from statesvc.delivery.outgoing import Destination, Outgoing
from statesvc.delivery.signing import SigningKey, signed_headers
from statesvc.delivery.targets import Targets

TYPE = "subscription.test"


async def try_out(
    targets: Targets, *, subscription_id: UUID, destination: Destination, keys: tuple[SigningKey, ...], now: datetime
) -> tuple[str, Answer]:
    """Sends it; returns its webhook-id and what came back."""
    webhook_id = f"t1-{secrets.token_hex(16)}"
    body = orjson.dumps({"type": TYPE, "timestamp": rfc3339(now), "data": {"subscription_id": str(subscription_id)}})
    headers = signed_headers(keys, webhook_id=webhook_id, timestamp=int(now.timestamp()), body=body)
    outgoing = Outgoing(webhook_id=webhook_id, type=TYPE, at=now, subject=str(subscription_id), body=body, headers=headers)
    return webhook_id, await targets.send(destination, outgoing)
