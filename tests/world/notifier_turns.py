"""Turns of a notifier that claim alone, or settle alone."""

from collections.abc import Sequence
from typing import Any

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.notifier.attempts import AttemptResult
from statesvc.notifier.claim_outbox import Delivery
from statesvc.notifier.turn import Settled, Turn, take_turn


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


async def settle(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    group: Sequence[AttemptResult],
    *,
    worker: str,
    again: bool = False,
) -> Settled:
    """Settle what has ended."""
    return (
        await take_turn(connection, keyring, Turn(worker=worker, ended=group, settled_before=again))
    ).settled
