"""All that a package with a carrier of its own needs (docs/carrier-package.md), under one name in a wheel and in the tree."""

from events.carriers.carrier import (
    Ack,
    Basic,
    Carrier,
    Hmac,
    SharedHeader,
    ShipperChoice,
    UrlToken,
)
from events.carriers.installed import InstalledCarrier, InstalledVersion
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Normalized, PrintedTime, Raw, Reading, Rejection
from events.identity.recipe import Recipe
from events.vocabulary import Kind, Reason, Status, TimePrecision, TzSource

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
)
