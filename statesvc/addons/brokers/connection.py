"""Interface of a broker's module: an open connection that publishes with confirms."""

from typing import Protocol

from statesvc.addons.brokers.broker_url import BrokerUrl
from statesvc.addons.brokers.cloud_event import CloudEvent
from statesvc.addons.brokers.dialling import Dialler
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.delivery.outgoing import Login


class PublishRefusedError(Exception):
    """The broker answered that it did not store the message. `detail`: its own words, if any."""

    def __init__(self, outcome: AttemptOutcome, detail: str) -> None:
        super().__init__(outcome.value)
        self.outcome = outcome
        self.detail = detail


class ConnectionLostError(OSError):
    """The connection ended before the broker answered: it may have the message."""


class Connection(Protocol):
    """Several tasks may publish at a time; each waits for its own confirmation.

    The caller sets timeouts.
    """

    @property
    def is_open(self) -> bool:
        """False once it can no longer publish."""

    async def publish(self, event: CloudEvent) -> str:
        """Publish; return the broker's account of the message's place, once it is stored.

        Raises PublishRefusedError, or OSError if the outcome is unknown.
        """

    async def close(self) -> None:
        """Close the connection; pending confirmations are lost."""


class Client(Protocol):
    def check(self, url: BrokerUrl, login: Login | None) -> None:
        """Check a URL. Raises UrlFlawError if it names no target."""

    async def connect(self, url: BrokerUrl, login: Login | None, dialler: Dialler) -> Connection:
        """Open a connection.

        `PublishRefusedError` where the broker does not let us in, an OSError where there is none.
        """
