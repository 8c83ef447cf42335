"""Sending what waits without a notifier: claimed and settled as it does it, with an answer
that the test chooses.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.delivery.limiter.permits import Permits
from statesvc.delivery.notification import Notification, body_of
from statesvc.delivery.outcome import Answer, AttemptOutcome
from statesvc.notifier.attempts import AttemptResult
from statesvc.notifier.claim_outbox import Delivery
from statesvc.notifier.turn import Turn, take_turn


async def deliver(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    outcome: AttemptOutcome = AttemptOutcome.DELIVERED,
    status_code: int | None = 204,
    body: Callable[[Notification], bytes] = body_of,
) -> list[str]:
    """Send whatever may be sent now. Returns the bodies."""
    asked = Turn(
        worker="notifier-1", lease_seconds=60, offer=Permits(256).offer(time.time(), limit=64)
    )
    deliveries = await claim(connection, keyring, asked)
    answer = Answer(outcome=outcome, duration_seconds=0.01, status_code=status_code)
    finished = [
        AttemptResult(
            delivery=one, answer=answer, started_at=datetime.now(UTC), body=body(one.notification)
        )
        for one in sorted(deliveries, key=lambda one: one.sequence)
    ]
    await take_turn(connection, keyring, Turn(worker="notifier-1", ended=finished))
    return [one.body.decode() for one in finished]


async def claim(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    asked: Turn,
    *,
    thin: frozenset[Any] = frozenset(),
) -> list[Delivery]:
    """Lease what may be sent now."""
    done = await take_turn(connection, keyring, asked)
    assert done.claimed is not None
    return await done.claimed.deliveries(connection, keyring, thin=thin)
