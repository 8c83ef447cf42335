"""One `subscription.test` to a subscriber, also while it is paused or disabled. It counts nowhere and is never retried."""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import orjson

from events.entry import rfc3339
from statesvc.delivery.outcome import Answer
from statesvc.delivery.outgoing import Destination, Outgoing
from statesvc.delivery.signing import SigningKey, signed_headers
from statesvc.delivery.targets import Targets

TEST: Final = "subscription.test"


@dataclass(frozen=True, slots=True)
class SentTest:
    """What was sent, and what came back."""

    webhook_id: str
    answer: Answer


Means = tuple[Destination, tuple[SigningKey, ...]]
"""As `subscription_store.signing_means` reads them."""


async def send_test(targets: Targets, subscription_id: UUID, means: Means) -> SentTest:
    """Sends it, and waits for the answer. Holds no connection to the database meanwhile."""
    destination, keys = means
    now, webhook_id = datetime.now(UTC), f"t1-{secrets.token_hex(16)}"
    message = orjson.dumps({"type": TEST, "timestamp": rfc3339(now), "data": {"subscription_id": str(subscription_id)}})
    headers = signed_headers(keys, webhook_id=webhook_id, timestamp=int(now.timestamp()), body=message)
    outgoing = Outgoing(webhook_id=webhook_id, type=TEST, at=now, subject=str(subscription_id), body=message, headers=headers)
    return SentTest(webhook_id, await targets.send(destination, outgoing))
