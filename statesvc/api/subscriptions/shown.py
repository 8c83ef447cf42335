"""Subscriptions and attempts as the API shows them."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from projections.notification_type import NotificationType
from statesvc.api.subscriptions.models import AttemptShown, FailingShown, SubscriptionShown, WatchedNumber
from statesvc.api.subscriptions.ownership import absent
from statesvc.delivery.attempt_part import Response
from statesvc.subscriptions import subscription_store as store
from statesvc.subscriptions.recorded_attempts import RecordedAttempt
from statesvc.subscriptions.subscription_store import Subscription


async def read_shown(connection: AsyncConnection[Any], keyring: Keyring, subscription_id: UUID) -> SubscriptionShown:
    """A subscription as it is stored now. Raises the problem 404 where it is gone."""
    found = await store.find(connection, subscription_id)
    if found is None:
        raise absent(subscription_id)
    return subscription_shown(found, await store.public_keys(connection, keyring, [subscription_id]))


def subscription_shown(one: Subscription, public_keys: Mapping[UUID, list[str]]) -> SubscriptionShown:
    """A subscription with the public keys that sign for it."""
    return {
        "id": one.subscription_id,
        "owner": one.owner,
        "url": one.url,
        "has_login": one.has_login,
        "carriers": one.carriers,
        "statuses": one.statuses,
        "types": one.types,
        "shipments": None if one.shipments is None else [_number(watched) for watched in one.shipments],
        "parcels": one.parcels,
        "payload": one.payload,
        "pii": one.pii,
        "signature": one.signature,
        "public_keys": public_keys.get(one.subscription_id, []),
        "rate_per_second": one.rate_per_second,
        "coalesce": one.coalesce,
        "give_up_after_seconds": {kind.value: one.give_up_after.get(kind) for kind in NotificationType},
        "state": one.state,
        "created_at": one.created_at,
        "created_by": one.created_by,
        "paused_at": one.paused_at,
        "disabled_at": one.disabled_at,
        "disabled_why": one.disabled_why,
        "missed_since": one.missed_since,
        "failing": _failing(one),
    }


def _failing(one: Subscription) -> FailingShown | None:
    if one.failing_since is None:
        return None
    return {
        "since": one.failing_since,
        "failures": one.failures or 0,
        "last_outcome": one.last_outcome,
        "last_status_code": one.last_status_code,
    }


def _number(watched: str) -> WatchedNumber:
    carrier_id, _, number = watched.partition("/")
    return {"carrier_id": carrier_id, "tracking_number": number}


def attempt_shown(one: RecordedAttempt, response: Response | None) -> AttemptShown:
    """One try, and what its receiver answered where that was asked for."""
    return {
        "webhook_id": one.webhook_id,
        "type": one.type,
        "test": one.shipment_id is None,
        "carrier_id": one.carrier_id,
        "tracking_number": one.tracking_number,
        "sequence": one.sequence,
        "number": one.number,
        "outcome": one.outcome,
        "status_code": one.status_code,
        "duration_ms": one.duration_ms,
        "started_at": one.started_at,
        "recorded_at": one.recorded_at,
        "response": None if response is None else response.text,
        "response_headers": None if response is None else response.headers,
    }
