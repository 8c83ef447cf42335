"""Sending one notification again, under its id: as a replay of it alone, by the same limiter and with the same retries.

What waits already is not put twice: it is due at once.
"""

from typing import Any
from uuid import UUID, uuid4

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.log.actions import Action
from statesvc.subscriptions.replay import SentAgain, put_again, record_again
from statesvc.subscriptions.sent_notifications import SentNotification

_SQL = queries("statesvc.subscriptions", "resend")


async def resend(connection: AsyncConnection[Any], subscription_id: UUID, sent: SentNotification, *, actor: str, why: str = "") -> None:
    """Put it into the outbox, with an action in the log in the same transaction. Raises ArchivedHistoryError."""
    webhook_id = sent.notification.webhook_id
    details = {"webhook_id": webhook_id, **({"why": why} if why else {})}
    action = Action(actor=actor, verb="subscription.resend", target=f"subscription {subscription_id}", details=details)
    async with connection.transaction():
        again = SentAgain(subscription_id=subscription_id, actor=actor, why="sent again", run_id=uuid4())
        put = await put_again(connection, again, [(sent.place.shipment_id, sent.place.sequence, sent.place.at, True)])
        if not put:
            await connection.execute(_SQL["make_due"], {"subscription_id": subscription_id, "shipment_id": sent.place.shipment_id})
        await record_again(connection, put, action)
