"""The body of a notification. Pure, and the same bytes at every attempt: nothing in it depends on when it is sent."""

from dataclasses import dataclass, field
from datetime import datetime

import orjson

from events.entry import rfc3339


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


def body_of(notification: Notification) -> bytes:
    """Standard Webhooks 1.0.0: type, timestamp, data. `sequence` lets a receiver drop what it has already passed."""
    return orjson.dumps(
        {
            "type": notification.type,
            "timestamp": rfc3339(notification.created_at),
            "data": {
                "carrier_id": notification.carrier_id,
                "tracking_number": notification.tracking_number,
                "from": notification.from_status,
                "to": notification.to_status,
                "occurred_at": rfc3339(notification.occurred_at),
                "sequence": notification.sequence,
            },
        }
    )
