"""A message and its destination, in a form that every kind of target takes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A message. `body` is the same at every attempt; `headers` sign it for this attempt."""

    webhook_id: str
    type: str
    at: datetime
    """When the reported change was recorded."""
    subject: str
    """Id of the shipment, or of the subscription in a test."""
    sequence: int | None = None
    """Position among the messages of its subject."""
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Login:
    """The login at a broker. Without a password, `user` is a token, if the broker has tokens."""

    user: str = field(repr=False)
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Destination:
    """Destination of a subscription's notifications.

    Its URL as it is shown, the login that its URL held, and the receiver's own headers.
    """

    url: str = field(repr=False)
    login: Login | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
