"""Notifications of changes without a message behind them, written as the append transaction does
it: entries and outbox together.
"""

from collections.abc import Sequence
from typing import Any

from psycopg import AsyncConnection

from statesvc.append.outbox import (
    OutboxChange,
    fan_out,
    fanout_of,
    read_live_subscriptions,
    write_notifications,
)
from statesvc.log.batch_row import begin_batch, write_batch
from statesvc.log.fanouts import append_fanouts


async def notify_of(connection: AsyncConnection[Any], changes: Sequence[OutboxChange]) -> int:
    """Fan out in one transaction. Return how many notifications that made."""
    async with connection.transaction():
        asked = await read_live_subscriptions(
            connection, {(change.carrier_id, change.number) for change in changes}
        )
        fanned_out = fan_out(changes, await asked.rows())
        now = await (await begin_batch(connection)).rows()
        written = await write_notifications(connection, fanned_out, epoch=now.epoch)
        if fanned_out:
            fanouts = [fanout_of(change, subscriptions) for change, subscriptions in fanned_out]
            leaf_hashes = await append_fanouts(connection, fanouts, now=now)
            times = [fanout.recorded_at for fanout in fanouts]
            await write_batch(
                connection,
                batch_id=now.batch_id,
                recorded_at=min(times),
                recorded_to=max(times),
                leaf_hashes=leaf_hashes,
                writer="worker-1",
            )
    return written
