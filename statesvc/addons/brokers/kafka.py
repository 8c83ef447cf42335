"""Kafka: `kafka://[user:password@]host[:9092]/topic[?sasl=SCRAM-SHA-512]`,
`kafka+tls://` encrypted.

The message is stored when all replicas in sync have it (acks=all); the producer is idempotent, and
the key is the shipment, so that one partition keeps its order. Attributes are headers `ce_...`
(CloudEvents' binding for Kafka, binary mode).

Kafka answers with the addresses of its brokers, and its client connects to them: each is checked
like the one in the URL.
"""

import asyncio
import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

import aiokafka.client
import aiokafka.errors
import orjson
from aiokafka import AIOKafkaProducer
from aiokafka.conn import AIOKafkaConnection

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

_REQUEST_MS: Final = 10_000
_TOPIC: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def check(url: BrokerUrl, login: Login | None) -> None:
    (topic,) = url.segments("topic")
    url.check_options({"sasl"})
    if not _TOPIC.fullmatch(topic):
        raise UrlFlawError(
            "must name a topic after the host: at most 249 letters and digits, dots, - and _"
        )
    if url.options.get("sasl", _MECHANISMS[0]) not in _MECHANISMS:
        raise UrlFlawError(f"names no mechanism that is spoken here: sasl={', '.join(_MECHANISMS)}")
    if login is not None and login.password is None:
        raise UrlFlawError("names a user without a password")
    if login is None and "sasl" in url.options:
        raise UrlFlawError("asks for a login, but holds none")


async def connect(url: BrokerUrl, login: Login | None, dialler: Dialler) -> "Kafka":
    """Make a producer for a topic."""
    watch = _Watch(dialler)
    _watch.set(watch)
    producer = AIOKafkaProducer(
        bootstrap_servers=url.netloc,
        client_id="statesvc",
        acks="all",
        enable_idempotence=True,
        request_timeout_ms=_REQUEST_MS,
        security_protocol=_protocol(url, login),
        ssl_context=dialler.tls_context if url.tls else None,
        **_credentials(url, login),
    )
    try:
        await producer.start()
    except BaseException as error:
        await producer.stop()
        # also where it was tried until the time was over: the last error says more than that
        cause = watch.error or error
        if not isinstance(cause, OSError | aiokafka.errors.KafkaError):
            raise
        raise _meaning(cause) from error
    return Kafka(producer, url.path[0], watch)


def headers_of(event: CloudEvent) -> list[tuple[str, bytes]]:
    mapped = {**event.headers("ce_"), "content-type": CONTENT_TYPE}
    return [(name, value.encode()) for name, value in mapped.items()]


class Kafka:
    """A producer that is connected, or connects by itself again as its brokers move."""

    # the client is not typed
    def __init__(self, producer: Any, topic: str, watch: "_Watch") -> None:  # noqa: ANN401
        self._producer = producer
        self._topic = topic
        self._watch = watch
        self._is_open = True

    @property
    def is_open(self) -> bool:
        """True until a message was left open: a new producer then replaces this one."""
        return self._is_open

    async def publish(self, event: CloudEvent) -> str:
        """Publish, and wait until all replicas in sync have it."""
        try:
            stored = await self._producer.send_and_wait(
                self._topic,
                value=event.data,
                key=event.partition_key.encode(),
                headers=headers_of(event),
            )
        except aiokafka.errors.KafkaError as error:
            meaning = _meaning(self._watch.error or error)
            self._is_open = isinstance(meaning, PublishRefusedError)
            raise meaning from error
        return orjson.dumps(
            {"topic": stored.topic, "partition": stored.partition, "offset": stored.offset}
        ).decode()

    async def close(self) -> None:
        """Close the producer, and drop its unsent messages."""
        self._is_open = False
        await self._producer.stop()


def _protocol(url: BrokerUrl, login: Login | None) -> str:
    transport = "SSL" if url.tls else "PLAINTEXT"
    return transport if login is None else f"SASL_{transport}"


def _credentials(url: BrokerUrl, login: Login | None) -> dict[str, str | None]:
    if login is None:
        return {}
    mechanism = url.options.get("sasl", _MECHANISMS[0])
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": login.user,
        "sasl_plain_password": login.password,
    }


_REFUSALS: Final = (
    (
        (aiokafka.errors.UnknownTopicOrPartitionError, aiokafka.errors.InvalidTopicError),
        AttemptOutcome.UNROUTABLE,
        "there is no such topic",
    ),
    (
        (aiokafka.errors.NotEnoughReplicasError, aiokafka.errors.NotEnoughReplicasAfterAppendError),
        AttemptOutcome.NOT_STORED,
        "too few replicas are in sync (min.insync.replicas)",
    ),
    (
        (
            aiokafka.errors.TopicAuthorizationFailedError,
            aiokafka.errors.ClusterAuthorizationFailedError,
            aiokafka.errors.SaslAuthenticationFailed,
            aiokafka.errors.UnsupportedSaslMechanismError,
        ),
        AttemptOutcome.DENIED,
        "the cluster refuses this login, or lets it not write to the topic",
    ),
    (
        (aiokafka.errors.MessageSizeTooLargeError, aiokafka.errors.RecordListTooLargeError),
        AttemptOutcome.REFUSED,
        "the topic takes no message of this size (max.message.bytes)",
    ),
)


def _meaning(error: Exception) -> Exception:
    for kinds, outcome, detail in _REFUSALS:
        if isinstance(error, kinds):
            return PublishRefusedError(outcome, detail)
    if isinstance(error, aiokafka.errors.KafkaTimeoutError | aiokafka.errors.RequestTimedOutError):
        return TimeoutError()
    if isinstance(error, aiokafka.errors.BrokerResponseError):
        answered = f"the broker answered {type(error).__name__}"
        if error.retriable:
            return ConnectionLostError(answered)
        return PublishRefusedError(AttemptOutcome.REFUSED, answered)
    return error if isinstance(error, OSError) else ConnectionLostError()


class _Watch:
    """Opener of a producer's connections; keeps the last error, which the client hides."""

    def __init__(self, dialler: Dialler) -> None:
        self.dialler = dialler
        self.error: Exception | None = None


_watch: ContextVar[_Watch] = ContextVar("kafka connections")


class _CheckedLoop:
    """The event loop, but for opening connections."""

    def __init__(self, loop: asyncio.AbstractEventLoop, dialler: Dialler) -> None:
        self._loop = loop
        self._dialler = dialler

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the loop has
        return getattr(self._loop, name)

    async def create_connection(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        ssl: Any,  # noqa: ANN401 - as the loop's
    ) -> Any:  # noqa: ANN401 - as the loop's
        connected = await self._dialler.connect(host, port, tls=ssl is not None)
        try:
            return await self._loop.create_connection(
                factory, sock=connected, ssl=ssl, server_hostname=host if ssl else None
            )
        except BaseException:
            connected.close()
            raise


# as the client's own
async def _create_checked(host: str, port: int, **options: Any) -> Any:  # noqa: ANN401
    """Replace the client's `create_conn`, which connects to any address it is given."""
    watch = _watch.get()
    connection = AIOKafkaConnection(host, port, **options)
    # the only place where its dialling can be reached
    connection._loop = _CheckedLoop(connection._loop, watch.dialler)  # noqa: SLF001
    try:
        await connection.connect()
    except Exception as error:
        watch.error = error
        raise
    watch.error = None
    return connection


aiokafka.client.create_conn = _create_checked
