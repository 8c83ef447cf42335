"""The body of a notification. Pure, and the same bytes at every attempt: nothing in it depends on when it is sent."""

from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import orjson

from events.entry import rfc3339
from statesvc.notifier.full_payload import Full


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Notifications of the same shipment that were left out before this one, because too much waited: so many, from .. to."""

    skipped: int
    from_sequence: int
    to_sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What a subscriber is told. `created_at`: when the change was recorded; `occurred_at`: when the carrier says it happened."""

    webhook_id: str
    type: str
    created_at: datetime
    occurred_at: datetime
    carrier_id: str
    tracking_number: str = field(repr=False)
    from_status: str
    to_status: str
    sequence: int
    gap: Gap | None = None
    full: Full | None = None
    """For subscriptions with a full payload: the event and the shipment's state."""


def body_of(notification: Notification) -> bytes:
    """Standard Webhooks 1.0.0: type, timestamp, data.

    `sequence` lets a receiver drop what it has already passed; `gap` says what it was not told.
    """
    data: dict[str, Any] = {
        "carrier_id": notification.carrier_id,
        "tracking_number": notification.tracking_number,
        "from": notification.from_status,
        "to": notification.to_status,
        "occurred_at": rfc3339(notification.occurred_at),
        "sequence": notification.sequence,
    }
    if notification.gap is not None:
        data["gap"] = asdict(notification.gap)
    if notification.full is not None:
        data |= {"event": notification.full.event, "shipment": notification.full.shipment, "erased": notification.full.erased}
    return orjson.dumps({"type": notification.type, "timestamp": rfc3339(notification.created_at), "data": data})
