"""The closed lists of words that an event may use.

Wire values are the enum values; they only ever grow (a removed or renamed word would make old
log entries unreadable).
"""

from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """Effect of an event on its shipment."""

    SCAN = "scan"
    INFO = "info"
    """Adds a fact (ETA, photo, signer); never moves the status."""
    CORRECTION = "correction"
    """Retracts or re-reads an earlier event."""
    UNMAPPED = "unmapped"
    """An unknown carrier code: facts stored, meaning not guessed."""


class Status(StrEnum):
    """Status of a shipment. `UNKNOWN` is the initial state only and never occurs in an event."""

    UNKNOWN = "unknown"
    INFO_RECEIVED = "info_received"
    PICKED_UP = "picked_up"
    IN_TRANSIT = "in_transit"
    EXCEPTION = "exception"
    AVAILABLE_FOR_PICKUP = "available_for_pickup"
    OUT_FOR_DELIVERY = "out_for_delivery"
    DELIVERY_ATTEMPTED = "delivery_attempted"
    RETURNING = "returning"
    DELIVERED = "delivered"
    RETURNED = "returned"
    CANCELLED = "cancelled"
    LOST = "lost"
    DESTROYED = "destroyed"


# Order of scans of the same instant: the later stage of a parcel's journey folds last.
RANK: Final[dict[Status | None, int]] = {
    None: 0,
    Status.UNKNOWN: 0,
    Status.INFO_RECEIVED: 1,
    Status.PICKED_UP: 2,
    Status.IN_TRANSIT: 3,
    Status.EXCEPTION: 4,
    Status.AVAILABLE_FOR_PICKUP: 5,
    Status.OUT_FOR_DELIVERY: 6,
    Status.DELIVERY_ATTEMPTED: 7,
    Status.RETURNING: 8,
    Status.DELIVERED: 9,
    Status.RETURNED: 10,
    Status.CANCELLED: 10,
    Status.LOST: 10,
    Status.DESTROYED: 10,
}


class Reason(StrEnum):
    """Reason for which a shipment is in `exception`, was attempted in vain, or is returning."""

    CONSIGNEE_ABSENT = "consignee_absent"
    CONSIGNEE_REFUSED = "consignee_refused"
    CONSIGNEE_MOVED = "consignee_moved"
    CONSIGNEE_REQUESTED = "consignee_requested"
    ADDRESS_INCORRECT = "address_incorrect"
    BUSINESS_CLOSED = "business_closed"
    ACCESS_PROBLEM = "access_problem"
    PAYMENT_DUE = "payment_due"
    IDENTITY_MISSING = "identity_missing"
    CUSTOMS_DOCUMENTS = "customs_documents"
    CUSTOMS_HOLD = "customs_hold"
    CUSTOMS_REFUSED = "customs_refused"
    DAMAGED = "damaged"
    MISSING_CONTENTS = "missing_contents"
    MISSORTED = "missorted"
    DELAYED_CARRIER = "delayed_carrier"
    WEATHER = "weather"
    STRIKE = "strike"
    SECURITY = "security"
    PROHIBITED_GOODS = "prohibited_goods"
    UNCLAIMED = "unclaimed"
    LABEL_UNREADABLE = "label_unreadable"
    HELD = "held"
    LOST = "lost"
    STOLEN = "stolen"
    DESTROYED = "destroyed"
    OTHER = "other"


class TzSource(StrEnum):
    """Source of the offset of an event's time."""

    EXPLICIT = "explicit"
    PAIR = "pair"
    LOCATION = "location"
    CARRIER_DEFAULT = "carrier_default"
    ASSUMED_UTC = "assumed_utc"
    RECEIVED = "received"


class TimePrecision(StrEnum):
    """Precision with which the carrier printed the time."""

    SECOND = "second"
    MINUTE = "minute"
    DAY = "day"


class Verdict(StrEnum):
    """Outcome of an append for an event."""

    APPENDED = "appended"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
