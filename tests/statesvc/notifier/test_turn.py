"""One turn of a notifier: what it settles, and when it claims as well."""

import time
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from statesvc.delivery.limiter.permits import Permits
from statesvc.delivery.notification import body_of
from statesvc.delivery.outcome import Answer, AttemptOutcome
from statesvc.notifier.attempts import AttemptResult
from statesvc.notifier.claim_outbox import Delivery, OutboxClaim
from statesvc.notifier.turn import Turn, TurnResult, take_turn
from tests.world.notifier_turns import claim

CLAIM = OutboxClaim(
    worker="notifier-1", lease_seconds=60, offer=Permits(256).offer(time.time(), limit=64)
)


async def settling_turn(world: Any, delivery: Delivery) -> TurnResult:
    """Take a turn because this delivery has arrived, and for no other reason."""
    answer = Answer(outcome=AttemptOutcome.DELIVERED, duration_seconds=0.01, status_code=204)
    result = AttemptResult(
        delivery=delivery,
        answer=answer,
        started_at=datetime.now(UTC),
        body=body_of(delivery.notification),
    )
    turn = Turn(worker="notifier-1", ended=[result], claim=CLAIM, claims=False)
    return await take_turn(world.connection, world.keyring, turn)


async def claimed_shipment(world: Any, *sequences: int) -> tuple[UUID, Delivery]:
    shipment_id = await world.notified_shipment(*sequences)
    (delivery,) = await claim(world.connection, world.keyring, CLAIM)
    return shipment_id, delivery


async def test_settling_claims_what_waited_behind_it(world: Any) -> None:
    shipment_id, delivery = await claimed_shipment(world, 1, 2)
    done = await settling_turn(world, delivery)
    assert done.claimed is not None
    (follower,) = await done.claimed.deliveries(world.connection, world.keyring)
    assert (follower.shipment_id, follower.sequence) == (shipment_id, 2)
    assert await world.outbox() == [(shipment_id, 2, 1, True)]


async def test_settling_claims_nothing_where_nothing_waited_behind_it(world: Any) -> None:
    _, delivery = await claimed_shipment(world, 1)
    other, _ = await world.shipment()
    await world.notify(other, 1)
    done = await settling_turn(world, delivery)
    assert done.claimed is None
    assert await world.outbox() == [(other, 1, 0, False)], "whoever wrote it wakes the notifier"
