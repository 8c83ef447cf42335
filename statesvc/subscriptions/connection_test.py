"""A test notification to a subscriber, even a paused or disabled one. Never retried or counted.

It is listed with the attempts, the newest of each subscription only, because it is no proof.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.delivery.event_catalogue import BY_TYPE, CONNECTION_TEST
from statesvc.delivery.notification import body
from statesvc.delivery.outcome import Answer
from statesvc.delivery.outgoing import Outgoing
from statesvc.delivery.signing import signed_headers
from statesvc.delivery.targets import Targets
from statesvc.log.actions import record_action
from statesvc.subscriptions.signing_means import SigningMeans

RECORDED_MAX: Final = 20

_SQL = queries("statesvc.subscriptions", "connection_test")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentTest:
    webhook_id: str
    type: str
    data: Mapping[str, Any]
    started_at: datetime
    answer: Answer


async def send_test(
    targets: Targets, subscription_id: UUID, means: SigningMeans, *, kind: str = CONNECTION_TEST
) -> SentTest:
    """Send the catalogue's example of a type, and wait for the answer.

    Holds no connection to the database meanwhile.
    """
    now, webhook_id = datetime.now(UTC), f"t1-{secrets.token_hex(16)}"
    data: Mapping[str, Any]
    if kind == CONNECTION_TEST:
        data = {"subscription_id": str(subscription_id)}
    else:
        data = {**BY_TYPE[kind].example(means.payload, pii=means.pii), "test": True}
    message = body(kind, now, data)
    headers = signed_headers(
        means.keys,
        webhook_id=webhook_id,
        timestamp=int(now.timestamp()),
        body=message,
        older=means.older,
    )
    outgoing = Outgoing(
        webhook_id=webhook_id,
        type=kind,
        at=now,
        subject=str(subscription_id),
        body=message,
        headers=headers,
    )
    came = await targets.send(means.destination, outgoing)
    return SentTest(webhook_id=webhook_id, type=kind, data=data, started_at=now, answer=came)


async def record_test(
    connection: AsyncConnection[Any],
    subscription_id: UUID,
    sent: SentTest,
    *,
    actor: str = "",
    why: str = "",
) -> None:
    """List it with the attempts, at most `RECORDED_MAX`.

    A test with a reason is an operator action too.
    """
    async with connection.transaction():
        await connection.execute(
            _SQL["record"],
            {
                "subscription_id": subscription_id,
                "webhook_id": sent.webhook_id,
                "type": sent.type,
                "carrier_id": sent.data.get("carrier_id"),
                "tracking_number": sent.data.get("tracking_number"),
                "sequence": sent.data.get("sequence"),
                "started_at": sent.started_at,
                "duration_ms": round(sent.answer.duration_seconds * 1000),
                "outcome": sent.answer.outcome.value,
                "status_code": sent.answer.status_code,
            },
        )
        await connection.execute(
            _SQL["forget_old"], {"subscription_id": subscription_id, "recorded_max": RECORDED_MAX}
        )
        if why:
            details = {"why": why, "type": sent.type, "outcome": sent.answer.outcome.value}
            target = f"subscription {subscription_id}"
            await record_action(
                connection, actor=actor, verb="subscription.test", target=target, details=details
            )
