"""Sending a single notification again under its id, through the same limiter and retries.

A waiting notification becomes due at once, and is not put twice. The end of a send in progress is
waited for briefly.
"""

import asyncio
from typing import Any, Final
from uuid import UUID, uuid4

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.log.actions import Action
from statesvc.subscriptions.replay import SentAgain, put_again, record_again
from statesvc.subscriptions.sent_notifications import SentNotification

_SQL = queries("statesvc.subscriptions", "resend")


_LOOKS: Final = 20
_LOOK_SECONDS: Final = 0.05


class UnderWayError(RuntimeError):
    """A notifier is sending it, and has not ended within a second."""


async def resend(
    connection: AsyncConnection[Any],
    subscription_id: UUID,
    sent: SentNotification,
    *,
    actor: str,
    why: str = "",
) -> None:
    """Put it into the outbox, with an action in the log in the same transaction.

    Raises ArchivedHistoryError, UnderWayError.
    """
    await _until_ended(connection, subscription_id, sent)
    webhook_id = sent.notification.webhook_id
    details = {"webhook_id": webhook_id, **({"why": why} if why else {})}
    action = Action(
        actor=actor,
        verb="subscription.resend",
        target=f"subscription {subscription_id}",
        details=details,
    )
    async with connection.transaction():
        again = SentAgain(
            subscription_id=subscription_id, actor=actor, why="sent again", run_id=uuid4()
        )
        put = await put_again(
            connection, again, [(sent.place.shipment_id, sent.place.sequence, sent.place.at, True)]
        )
        if not put:
            await connection.execute(
                _SQL["make_due"],
                {"subscription_id": subscription_id, "shipment_id": sent.place.shipment_id},
            )
        await record_again(connection, put, action)


async def _until_ended(
    connection: AsyncConnection[Any], subscription_id: UUID, sent: SentNotification
) -> None:
    notification = {
        "subscription_id": subscription_id,
        "shipment_id": sent.place.shipment_id,
        "sequence": sent.place.sequence,
    }
    for _ in range(_LOOKS):
        if await (await connection.execute(_SQL["under_way"], notification)).fetchone() is None:
            return
        await asyncio.sleep(_LOOK_SECONDS)
    raise UnderWayError
