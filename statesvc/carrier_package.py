"""The kit for a carrier of another package (docs/carrier-package.md): one name in a
wheel and in the tree.

The other names are those of 0.1.0.
"""

from events.carriers import kit
from events.carriers.kit import (
    Ack,
    Basic,
    Carrier,
    Cause,
    EventPlace,
    Hmac,
    InstalledCarrier,
    InstalledVersion,
    Kind,
    Normalized,
    PrintedTime,
    Raw,
    Reading,
    Reason,
    Recipe,
    Rejection,
    SharedHeader,
    ShipperChoice,
    Status,
    TimePrecision,
    TzSource,
    UnreadableMessageError,
    UrlToken,
)

__all__ = (
    "Ack",
    "Basic",
    "Carrier",
    "Cause",
    "EventPlace",
    "Hmac",
    "InstalledCarrier",
    "InstalledVersion",
    "Kind",
    "Normalized",
    "PrintedTime",
    "Raw",
    "Reading",
    "Reason",
    "Recipe",
    "Rejection",
    "SharedHeader",
    "ShipperChoice",
    "Status",
    "TimePrecision",
    "TzSource",
    "UnreadableMessageError",
    "UrlToken",
    "kit",
)
