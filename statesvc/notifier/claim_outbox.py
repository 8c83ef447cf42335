"""Claiming notifications from the outbox, and giving them back.

A claim is a lease under a fencing token: `outbox.available_at` is its end, so a notifier that dies
needs no rescue. Attempts are counted at the claim, before anything is sent.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import structlog
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.crypto.sealing import SealError
from statesvc.database.pipelined import pipelined_transaction
from statesvc.database.queries import Pending, Sender, columns, queries, send
from statesvc.delivery.full_payload import ShipmentPast, full_payload_of, read_past
from statesvc.delivery.limiter.permits import Offer
from statesvc.delivery.notification import QueuedNotification, notification_of
from statesvc.delivery.outgoing import Destination
from statesvc.delivery.signing import OlderSignature
from statesvc.subscriptions.signing_means import older_signature
from statesvc.subscriptions.subscription_secrets import Secret, open_destination, open_secrets

_SQL = queries("statesvc.notifier", "claim_outbox")

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery(QueuedNotification):
    """A leased notification, complete for sending.

    Without secrets: a sealed notification cannot be opened, so it cannot be sent.
    """

    token: UUID
    claimed_at: datetime
    received_at: datetime | None = None
    """Time at which the message that caused it was acknowledged; None: no message
    did, or it is a replay.
    """
    traceparent: str | None = None
    has_rate: bool = False
    """Its subscription has a contracted rate, which may have delayed it."""
    has_followers: bool = False
    """Another notification of its shipment waited for its end when it was claimed."""
    gives_up_at: datetime | None = None
    """Time at which it becomes too old to be tried."""
    is_too_old: bool = False
    """Its news was too old for its subscription when it was recorded."""
    destination: Destination
    secrets: tuple[Secret, ...] = field(repr=False)
    older: OlderSignature | None = None
    """A second signature, for receivers that already check the other key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedRows:
    """Rows that a claim leased.

    The lease is durable once its transaction is. `at`: the database's time.
    """

    token: UUID
    at: datetime
    rows: "Sequence[_Row]"

    async def deliveries(
        self,
        connection: AsyncConnection[Any],
        keyring: Keyring,
        *,
        thin: frozenset[UUID] = frozenset(),
    ) -> list[Delivery]:
        """Return the deliveries to send. Raises ArchivedHistoryError.

        `thin`: shipments with an unreadable history: their notifications hold the change
        only.
        """
        full = [
            (row.shipment_id, row.sequence)
            for row in self.rows
            if row.is_full and row.observed is None
        ]
        past: dict[tuple[UUID, int], ShipmentPast] = {}
        if full:
            async with pipelined_transaction(connection) as pipeline:
                # after the claim's commit: a full body is made at each attempt, so that an erasure
                # reaches it
                past = await read_past(pipeline, full, thin=thin)
        return [
            _delivery(row, past.get(row[1:3]), token=self.token, keyring=keyring)
            for row in self.rows
        ]


async def send_claim(
    pipeline: Sender, offer: Offer, *, worker: str, lease_seconds: float
) -> Pending[ClaimedRows]:
    """Lease deliveries, none beyond the offer, in the caller's transaction."""
    # a token a claim: rows of an earlier claim of this notifier are fenced like a stranger's
    token = uuid4()
    parameters = {
        "limit": offer.free,
        "retry_limit": offer.retries,
        "fresh_free": offer.fresh.free,
        "fresh_retries": offer.fresh.retries,
        "token": token,
        "worker": worker,
        "lease_seconds": lease_seconds,
        **_known(offer),
    }

    def claimed(rows: Sequence[tuple[Any, ...]]) -> ClaimedRows:
        # a claim always returns a row, so that an empty one tells the time, too
        at: datetime = rows[0][-1]
        return ClaimedRows(
            token=token, at=at, rows=[_Row(*row) for row in rows if row[0] is not None]
        )

    return await send(pipeline, _SQL["claim"], parameters, claimed)


class _Row(NamedTuple):
    subscription_id: UUID
    shipment_id: UUID
    sequence: int
    webhook_id: str
    type: str
    created_at: datetime
    occurred_at: datetime
    occurred_offset_seconds: int
    epoch: int | None
    carrier_id: str
    tracking_number: str
    from_status: str
    to_status: str
    skipped: int | None
    from_sequence: int | None
    to_sequence: int | None
    observed: dict[str, Any] | None
    url: str
    is_full: bool
    pii: bool
    give_up_seconds: float | None
    is_too_old: bool | None
    sealed_secrets: list[bytes]
    sealed_login: bytes | None
    sealed_headers: bytes | None
    signature: dict[str, str] | None
    sealed_key: bytes | None
    has_rate: bool
    has_followers: bool
    attempts: int
    earlier_attempts: int
    queued_at: datetime
    received_at: datetime | None
    traceparent: str | None
    claimed_at: datetime


def _known(offer: Offer) -> dict[str, list[Any]]:
    """Return the offer by subscription, an array for each field."""
    rows = [
        (
            one,
            allowance.free,
            allowance.retries,
            allowance.in_flight,
            _instant(allowance.not_before),
        )
        for one, allowance in offer.known.items()
    ]
    return columns(rows, ("known_ids", "frees", "retries", "in_flights", "not_befores"))


def _instant(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _delivery(row: _Row, past: ShipmentPast | None, *, token: UUID, keyring: Keyring) -> Delivery:
    try:
        secrets = open_secrets(keyring, row.subscription_id, row.sealed_secrets)
        destination = open_destination(
            keyring,
            row.subscription_id,
            row.url,
            sealed_login=row.sealed_login,
            sealed_headers=row.sealed_headers,
        )
    except SealError as error:
        _log.error(
            "subscription_secret_unreadable", subscription_id=row.subscription_id, error=error
        )
        # unsigned is not sent at all: the attempt ends as UNSIGNED, and the receiver is not blamed
        secrets, destination = (), Destination(row.url)
    notification = notification_of(row.sequence, row[3:17])
    if row.is_full:
        full = full_payload_of(past, keyring, row.shipment_id, row.sealed_key, pii=row.pii)
        notification = replace(notification, full=full)
    return Delivery(
        subscription_id=row.subscription_id,
        shipment_id=row.shipment_id,
        sequence=row.sequence,
        token=token,
        attempts=row.attempts,
        earlier_attempts=row.earlier_attempts,
        claimed_at=row.claimed_at,
        received_at=row.received_at,
        traceparent=row.traceparent,
        has_rate=row.has_rate,
        has_followers=row.has_followers,
        gives_up_at=None
        if row.give_up_seconds is None
        else row.queued_at + timedelta(seconds=row.give_up_seconds),
        is_too_old=bool(row.is_too_old),
        notification=notification,
        destination=destination,
        secrets=secrets,
        older=older_signature(row.signature),
        sealed_key=row.sealed_key,
    )


async def release(connection: AsyncConnection[Any], tokens: Iterable[UUID]) -> None:
    """Give back the notifications that these claims still hold, without counting an attempt."""
    await connection.execute(_SQL["release"], {"tokens": list(tokens)})


async def give_back(
    connection: AsyncConnection[Any],
    deliveries: "Sequence[Delivery] | Sequence[_Row]",
    *,
    token: UUID,
) -> None:
    """Give back part of a claim, without counting an attempt."""
    keys = [(one.subscription_id, one.shipment_id, one.sequence) for one in deliveries]
    await connection.execute(
        _SQL["give_back"],
        {"token": token, **columns(keys, ("subscription_ids", "shipment_ids", "sequences"))},
    )


async def send_next_due(pipeline: Sender, offer: Offer) -> Pending[float]:
    """Query the seconds until the next notification may be claimed, as known before or after a
    claim; infinite: none waits for its time.

    A claimed notification cannot become due before its lease ends.
    """
    known = _known(offer)
    parameters = {name: known[name] for name in ("known_ids", "frees", "not_befores")}
    return await send(
        pipeline,
        _SQL["next_due"],
        parameters,
        lambda rows: inf if rows[0][0] is None else rows[0][0],
    )
