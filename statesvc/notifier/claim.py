"""Claiming from the outbox, and giving back.

A claim is a lease under a fencing token: `outbox.available_at` is its end, so a notifier that dies needs no rescue. Attempts are
counted at the claim, before anything is sent.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

import structlog
from psycopg import AsyncConnection

from events.keyring import Keyring
from events.sealing import SealError
from events.sql.pending import columns
from events.sql.queries import queries
from statesvc.notifier.body import Notification
from statesvc.subscriptions.secret import Secret, open_secrets

_SQL = queries("statesvc.notifier", "claim")
_PURGE_ROWS_MAX: Final = 5_000

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One leased notification with all that it takes to send it. No secrets: they do not open, it can't be signed."""

    subscription_id: UUID
    shipment_id: UUID
    sequence: int
    token: UUID
    attempts: int
    claimed_at: datetime
    notification: Notification
    url: str = field(repr=False)
    secrets: tuple[Secret, ...] = field(repr=False)
    sealed_key: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a notifier asks for. `busy`: what it has in flight by subscription, each at most `share`."""

    worker: str
    limit: int
    lease_seconds: float
    share: int
    busy: Mapping[UUID, int]


async def claim(connection: AsyncConnection[Any], keyring: Keyring, asked: Claim) -> list[Delivery]:
    """Leases deliveries, at most `limit`. The lease is durable when this returns."""
    token = uuid4()
    async with connection.transaction():
        cursor = await connection.execute(
            _SQL["claim"],
            {
                "limit": asked.limit,
                "share": asked.share,
                "busy_ids": list(asked.busy),
                "busy_counts": list(asked.busy.values()),
                "token": token,
                "worker": asked.worker,
                "lease_seconds": asked.lease_seconds,
            },
        )
        leased = {tuple(row[:3]): row[3:] for row in await cursor.fetchall()}
        if not leased:
            return []
        cursor = await connection.execute(
            _SQL["read_claimed"], columns(list(leased), ("subscription_ids", "shipment_ids", "sequences")), binary=True
        )
        rows = await cursor.fetchall()
    return [_delivery(row, *leased[row[:3]], token=token, keyring=keyring) for row in rows]


def _delivery(row: Sequence[Any], attempts: int, claimed_at: datetime, *, token: UUID, keyring: Keyring) -> Delivery:
    (
        subscription_id,
        shipment_id,
        sequence,
        webhook_id,
        kind,
        created_at,
        occurred_at,
        carrier_id,
        number,
        before,
        after,
        url,
        sealed,
        key,
    ) = row
    try:
        secrets = open_secrets(keyring, subscription_id, sealed)
    except SealError as error:
        _log.error("subscription_secret_unreadable", subscription_id=subscription_id, error=error)
        secrets = ()
    return Delivery(
        subscription_id=subscription_id,
        shipment_id=shipment_id,
        sequence=sequence,
        token=token,
        attempts=attempts,
        claimed_at=claimed_at,
        notification=Notification(
            webhook_id=webhook_id,
            type=kind,
            created_at=created_at,
            occurred_at=occurred_at,
            carrier_id=carrier_id,
            tracking_number=number,
            from_status=before,
            to_status=after,
            sequence=sequence,
        ),
        url=url,
        secrets=secrets,
        sealed_key=key,
    )


async def release(connection: AsyncConnection[Any], tokens: Iterable[UUID]) -> None:
    """Gives back what these claims still hold, uncharged."""
    await connection.execute(_SQL["release"], {"tokens": list(tokens)})


async def seconds_until_due(connection: AsyncConnection[Any]) -> float | None:
    """How long until a notification becomes available that is not yet; None: none waits."""
    row = await (await connection.execute(_SQL["next_due"])).fetchone()
    return None if row is None else row[0]


async def purge(connection: AsyncConnection[Any]) -> int:
    """Forgets a bounded number of notifications of deleted subscriptions. Answers how many."""
    return (await connection.execute(_SQL["purge"], {"limit": _PURGE_ROWS_MAX})).rowcount
