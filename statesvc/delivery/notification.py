"""The body of a notification. Pure: the same bytes at every attempt, at any time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from events.entry.kinds import rfc3339
from projections.notification_type import is_of_operator
from statesvc.delivery.full_payload import FullPayload
from statesvc.delivery.notification_data import ChangeData, OperatorData
from statesvc.shipments.local_time import in_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Notifications of the same shipment that this one replaces, because too many waited: how many,
    and from which to which.
    """

    skipped: int
    from_sequence: int
    to_sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A notification of a subscriber.

    `created_at`: when the change was recorded; `occurred_at`: when the carrier says it happened, in
    the offset in which it says so.
    """

    webhook_id: str
    type: str
    created_at: datetime
    occurred_at: datetime
    carrier_id: str
    tracking_number: str = field(repr=False)
    from_status: str
    to_status: str
    sequence: int
    epoch: int | None = None
    """Epoch of the log; None: the first."""
    observed: Mapping[str, Any] | None = None
    """Observation: `version`, of the shipment's last event then, and by which rule; `occurred_at`
    is since when it was so. Of a type for operators the `incident`, as its body states it.
    """
    gap: Gap | None = None
    full: FullPayload | None = None
    """For subscriptions with a full payload: the event and the shipment's state."""


def body_of(notification: Notification) -> bytes:
    """Format the body by Standard Webhooks 1.0.0: type, timestamp, data.

    `sequence` lets a receiver drop what it has already passed, within one `epoch` of the log
    (absent: 1); in the next sequences begin anew. `gap` says what was left out before it. An
    observation has the `sequence` of the shipment's last change or event before it.
    """
    return body(notification.type, notification.created_at, data_of(notification))


def body(kind: str, at: datetime, data: Mapping[str, Any]) -> bytes:
    """Format the bytes of any notification, of its type and its data.

    `at`: when what it reports was recorded.
    """
    return orjson.dumps({"type": kind, "timestamp": rfc3339(at), "data": data})


def data_of(notification: Notification) -> ChangeData | OperatorData:
    if notification.observed is not None and is_of_operator(notification.type):
        incident: OperatorData = notification.observed["incident"]
        return incident
    data: ChangeData = {
        "carrier_id": notification.carrier_id,
        "tracking_number": notification.tracking_number,
        "from": notification.from_status,
        "to": notification.to_status,
        "occurred_at": notification.occurred_at.isoformat(),
        "sequence": notification.sequence,
    }
    if notification.observed is not None:
        observed = notification.observed
        data["sequence"] = observed["version"]
        data["observed"] = {"cause": observed["cause"], "hours": observed["hours"]}
    if notification.epoch is not None:
        data["epoch"] = notification.epoch
    if notification.gap is not None:
        gap = notification.gap
        data["gap"] = {
            "skipped": gap.skipped,
            "from_sequence": gap.from_sequence,
            "to_sequence": gap.to_sequence,
        }
    if notification.full is not None:
        full = notification.full
        data["event"], data["shipment"], data["erased"] = full.event, full.shipment, full.erased
    return data


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedNotification:
    """One notification of the outbox, with the sealed key of its shipment (None once erased).

    `attempts`: this one included.

    `earlier_attempts`: those of its earlier lives; it was a dead letter and was replayed.
    """

    subscription_id: UUID
    shipment_id: UUID
    sequence: int
    attempts: int
    earlier_attempts: int = 0
    notification: Notification
    sealed_key: bytes | None = field(repr=False)

    @property
    def number(self) -> int:
        """Number of this attempt among all at this notification, as the log names it."""
        return self.earlier_attempts + self.attempts


def notification_of(sequence: int, row: Sequence[Any]) -> Notification:
    """Build a notification from its columns in the order of the queries, with the gap before it."""
    (
        webhook_id,
        kind,
        created_at,
        occurred_at,
        offset_seconds,
        epoch,
        carrier_id,
        number,
        from_status,
        to_status,
        *gap,
        observed,
    ) = row
    skipped, first_skipped, last_skipped = gap
    return Notification(
        webhook_id=webhook_id,
        type=kind,
        created_at=created_at,
        occurred_at=in_offset(occurred_at, offset_seconds),
        carrier_id=carrier_id,
        tracking_number=number,
        from_status=from_status,
        to_status=to_status,
        sequence=sequence,
        epoch=epoch,
        gap=None
        if skipped is None
        else Gap(skipped=skipped, from_sequence=first_skipped, to_sequence=last_skipped),
        observed=observed,
    )


def stated_observation(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a notification about an observation, from its entry."""
    details = document["details"]
    return {"version": document["version"], "cause": details["cause"], "hours": details["hours"]}
