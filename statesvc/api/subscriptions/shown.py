"""Subscriptions and attempts as the API shows them."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from projections.notification_type import NotificationType
from statesvc.api.operation_context import Context
from statesvc.api.subscriptions.models import (
    AttemptShown,
    FailingShown,
    SubscriptionShown,
    WatchedNumber,
)
from statesvc.api.subscriptions.ownership import absent
from statesvc.api.subscriptions.receiver_fields import OlderSignatureShown
from statesvc.delivery.attempt_part import Response
from statesvc.subscriptions import subscription_store as store
from statesvc.subscriptions.recorded_attempts import RecordedAttempt
from statesvc.subscriptions.signing_means import read_public_keys
from statesvc.subscriptions.subscription_store import Subscription


async def read_shown(
    connection: AsyncConnection[Any], context: Context, subscription_id: UUID
) -> SubscriptionShown:
    """Return a subscription as it is stored now. Raises the problem 404 where it is gone."""
    found = await store.find(connection, subscription_id)
    if found is None:
        raise absent(subscription_id)
    return (await all_shown(connection, context, [found]))[0]


async def all_shown(
    connection: AsyncConnection[Any], context: Context, found: Sequence[Subscription]
) -> list[SubscriptionShown]:
    """Return them with the public keys that sign for them.

    No secret is opened, and no master key is needed, if all are shared.
    """
    # most have a shared secret: a list of those needs no key, and so no KMS
    of_pairs = [one.subscription_id for one in found if one.may_have_public_keys]
    keyring = await context.keyring_if_any() if of_pairs else None
    keys = {} if keyring is None else await read_public_keys(connection, keyring, of_pairs)
    return [subscription_shown(one, keys) for one in found]


def subscription_shown(
    one: Subscription, public_keys: Mapping[UUID, list[str]]
) -> SubscriptionShown:
    return {
        "id": one.subscription_id,
        "owner": one.owner,
        "name": one.name,
        "description": one.description,
        "url": one.url,
        "has_login": one.has_login,
        "carriers": one.carriers,
        "statuses": one.statuses,
        "types": one.types,
        "shipments": None
        if one.shipments is None
        else [_number(watched) for watched in one.shipments],
        "parcels": one.parcels,
        "payload": one.payload,
        "pii": one.pii,
        "key_type": one.key_type,
        "signature": _signature(one.signature),
        "headers": one.header_names,
        "public_keys": public_keys.get(one.subscription_id, []),
        "rate_per_second": one.rate_per_second,
        "coalesce": one.coalesce,
        "give_up_after_seconds": {
            kind.value: one.give_up_after.get(kind) for kind in NotificationType
        },
        "max_age_seconds": one.max_age_seconds,
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


def _signature(stored: Mapping[str, str] | None) -> OlderSignatureShown | None:
    if stored is None:
        return None
    return {
        "algorithm": "hmac-sha256",
        "header": stored["header"],
        "encoding": stored["encoding"],
        "prefix": stored["prefix"],
    }


def _number(watched: str) -> WatchedNumber:
    carrier_id, _, number = watched.partition("/")
    return {"carrier_id": carrier_id, "tracking_number": number}


def attempt_shown(one: RecordedAttempt, response: Response | None) -> AttemptShown:
    """Return an attempt, with the receiver's answer if asked for."""
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
