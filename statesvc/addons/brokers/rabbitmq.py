"""RabbitMQ: `amqp://[user:password@]host[:5672]/vhost/exchange[?routing_key=..]`, `amqps://`.

The message is persistent and published as mandatory on a confirming channel: the broker confirms it
for durable queues after the disk or a quorum has it. An unroutable message is returned and
reported. Attributes are headers `cloudEvents_...`, which AMQP 1.0 consumers get as application
properties (CloudEvents' binding for AMQP).
"""

from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import aio_pika
import aiormq.exceptions
from aio_pika.abc import AbstractChannel, AbstractExchange, ConnectionParameter
from aiormq.connection import TransportFactory
from yarl import URL

from statesvc.addons.brokers.kit import (
    CONTENT_TYPE,
    BrokerUrl,
    CloudEvent,
    ConnectionLostError,
    Dialler,
    PublishRefusedError,
)
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.delivery.outgoing import Login
from statesvc.delivery.target_kind import UrlFlawError

_HEARTBEAT_SECONDS: Final = 20
_NAME_BYTES_MAX: Final = 255

MessageOf = Callable[[CloudEvent], aio_pika.Message]


def check(url: BrokerUrl, login: Login | None) -> None:
    vhost, exchange = url.segments("vhost", "exchange")
    url.check_options({"routing_key"})
    check_login(login)
    check_names(vhost, exchange, _routing_key(url))
    if not exchange and not url.options.get("routing_key"):
        raise UrlFlawError(
            "must name an exchange, or for the default exchange a queue: ?routing_key=QUEUE"
        )
    if exchange.startswith("amq.rabbitmq."):
        raise UrlFlawError("names an exchange of the broker's own")


def check_names(vhost: str, *names: str) -> None:
    """Raise UrlFlawError for an invalid name."""
    if not vhost:
        raise UrlFlawError("must name the virtual host; the default one is written %2F")
    if any(len(name.encode()) > _NAME_BYTES_MAX for name in (vhost, *names)):
        raise UrlFlawError("has a name of more than 255 bytes")


def check_login(login: Login | None) -> None:
    """Raise UrlFlawError for a login without a password."""
    if login is not None and login.password is None:
        raise UrlFlawError("names a user without a password")


async def connect(url: BrokerUrl, login: Login | None, dialler: Dialler) -> "RabbitMq":
    """Open a connection with a confirming channel."""
    return await open_exchange(
        url,
        login,
        dialler,
        exchange=url.path[1],
        routing_key=_routing_key(url),
        message_of=_message_of,
    )


async def open_exchange(
    url: BrokerUrl,
    login: Login | None,
    dialler: Dialler,
    *,
    exchange: str,
    routing_key: str,
    message_of: MessageOf,
) -> "RabbitMq":
    """Connect to an exchange of the virtual host in the URL's path."""
    connection = _Connection(address(url, login), transport_factory=_Given(dialler, tls=url.tls))
    try:
        await connection.connect()
        # without both, a publish that no queue took would look like a delivery
        channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
        opened = RabbitMq(
            connection,
            channel,
            await _exchange(channel, exchange),
            routing_key=routing_key,
            message_of=message_of,
        )
    except BaseException as error:
        await connection.close()
        refused = _refusal(error)
        if refused is not None:
            raise refused from error
        if isinstance(error, aiormq.exceptions.InvalidFrameError):
            # how the client takes it that the broker ends a connection while it is opened
            raise PublishRefusedError(
                AttemptOutcome.DENIED,
                "there is no such virtual host, or this login may not enter it",
            ) from error
        raise
    return opened


def address(url: BrokerUrl, login: Login | None) -> URL:
    """Return the URL for the client, without other options.

    A subscriber's options could name our files, or switch off checks.
    """
    who = (
        ""
        if login is None
        else f"{quote(login.user, safe='')}:{quote(login.password or '', safe='')}@"
    )
    vhost = quote(url.path[0], safe="")
    return URL(
        f"amqp://{who}{url.netloc}/{vhost}?heartbeat={_HEARTBEAT_SECONDS}&name=statesvc",
        encoded=True,
    )


def properties_of(event: CloudEvent) -> dict[str, Any]:
    """Return the properties of the message; the attributes are in `headers`."""
    return {
        "headers": event.headers("cloudEvents_"),
        "content_type": CONTENT_TYPE,
        # a confirmed transient message would be lost with the broker's next restart
        "delivery_mode": aio_pika.DeliveryMode.PERSISTENT,
        "message_id": event.id,
        "type": event.attributes["type"],
    }


def _message_of(event: CloudEvent) -> aio_pika.Message:
    return aio_pika.Message(event.data, **properties_of(event))


class RabbitMq:
    def __init__(
        self,
        connection: aio_pika.Connection,
        channel: AbstractChannel,
        exchange: AbstractExchange,
        *,
        routing_key: str,
        message_of: MessageOf,
    ) -> None:
        self._connection = connection
        self._channel = channel
        self._exchange = exchange
        self._routing_key = routing_key
        self._message_of = message_of

    @property
    def is_open(self) -> bool:
        """True if the channel is open: a broker ends it for mistakes."""
        return not self._connection.is_closed and not self._channel.is_closed

    async def publish(self, event: CloudEvent) -> str:
        """Publish, and wait until the broker confirms it."""
        message = self._message_of(event)
        try:
            await self._exchange.publish(message, self._routing_key, mandatory=True)
        except Exception as error:
            refused = _refusal(error)
            if refused is not None:
                raise refused from error
            raise ConnectionLostError from error
        return "confirmed"

    async def close(self) -> None:
        await self._connection.close()


class _Connection(aio_pika.Connection):
    """Lets its transport be chosen, as the layer below does."""

    PARAMETERS = (
        *aio_pika.Connection.PARAMETERS,
        ConnectionParameter(name="transport_factory", parser=lambda given: given, is_kwarg=True),
    )


class _Given(TransportFactory):
    """Connections that passed our address check."""

    def __init__(self, dialler: Dialler, *, tls: bool) -> None:
        self._dialler = dialler
        self._tls = tls

    # for transports that encrypt
    async def create(self, url: URL, **_: Any) -> tuple[StreamReader, StreamWriter]:  # noqa: ANN401
        assert url.host is not None  # noqa: S101 - it was built with one
        assert url.port is not None  # noqa: S101 - as above
        return await self._dialler.open(url.host, url.port, tls=self._tls)


async def _exchange(channel: AbstractChannel, name: str) -> AbstractExchange:
    # not declared: the exchange is the receiver's, and a missing one must be an error
    return await channel.get_exchange(name, ensure=False) if name else channel.default_exchange


# Refusals of the broker, their meaning, and our words if it has none.
_REFUSALS: Final = (
    # the first that fits: one that is returned is a kind of delivery error
    (
        aiormq.exceptions.PublishError,
        AttemptOutcome.UNROUTABLE,
        "no queue is bound to the exchange for this routing key",
    ),
    (
        aiormq.exceptions.DeliveryError,
        AttemptOutcome.NOT_STORED,
        "the broker did not take it: basic.nack",
    ),
    (aiormq.exceptions.ChannelNotFoundEntity, AttemptOutcome.UNROUTABLE, None),
    (aiormq.exceptions.ChannelAccessRefused, AttemptOutcome.DENIED, None),
    (aiormq.exceptions.ConnectionNotAllowed, AttemptOutcome.DENIED, None),
    (aiormq.exceptions.AuthenticationError, AttemptOutcome.DENIED, "the broker refuses this login"),
    (
        aiormq.exceptions.ProbableAuthenticationError,
        AttemptOutcome.DENIED,
        "the broker refuses this login",
    ),
    (aiormq.exceptions.ChannelPreconditionFailed, AttemptOutcome.REFUSED, None),
)


def _refusal(error: BaseException) -> PublishRefusedError | None:
    """Return the broker's refusal; None where it is the connection that failed."""
    for kind, outcome, detail in _REFUSALS:
        if isinstance(error, kind):
            return PublishRefusedError(
                outcome, detail or " ".join(str(part) for part in error.args)
            )
    return None


def _routing_key(url: BrokerUrl) -> str:
    return url.options.get("routing_key", "")
