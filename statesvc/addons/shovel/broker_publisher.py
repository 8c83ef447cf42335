"""Back to a broker: each message as it came, into its original queue.

RabbitMQ confirms each; Redis answers. A message from native delayed delivery is delayed again, for
the rest of the time to its ETA.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import aiormq.exceptions
import redis.asyncio
import redis.exceptions
from aiormq.abc import AbstractChannel, AbstractConnection
from yarl import URL

from statesvc.addons.shovel.amqp_connection import connect, count_messages, shown
from statesvc.addons.shovel.amqp_properties import VerbatimProperties
from statesvc.addons.shovel.celery_task import UnreadableTaskError, read_task
from statesvc.addons.shovel.delayed_delivery import delayed_address, destination, is_delaying
from statesvc.addons.shovel.source_message import ShovelError, SourceLostError, Taken, Transport
from statesvc.addons.shovel.sources import AMQP_SCHEMES, REDIS_SCHEMES, parse_url

_TIMEOUT_SECONDS: Final = 10


class BrokerPublisher(Protocol):
    """Open before use.

    Calls may raise SourceLostError: whether the broker has the messages is not known then.
    """

    transport: Transport

    async def open(self) -> None:
        """Open the publisher. Raises ShovelError where it is refused."""

    async def check(self, messages: Sequence[Taken]) -> None:
        """Check the queues. Raises ShovelError where a queue of theirs is not there."""

    async def publish(self, messages: Sequence[Taken]) -> None:
        """Publish; return when the broker has all messages."""

    async def close(self) -> None:
        """Close the socket. Safe to call twice."""


def make_publisher(url: str) -> BrokerPublisher:
    """Make a publisher. Raises ShovelError."""
    place = parse_url(url)
    if place.scheme in AMQP_SCHEMES:
        return AmqpPublisher(place)
    if place.scheme in REDIS_SCHEMES:
        return RedisPublisher(place)
    raise ShovelError(
        f"nothing is returned to {place.scheme!r}: use amqp://, amqps://, redis:// or rediss://"
    )


class AmqpPublisher:
    """Publisher to RabbitMQ, by the name of the queue: an exchange that is gone or bound otherwise
    by now does not matter.
    """

    transport = Transport.AMQP

    def __init__(self, url: URL) -> None:
        self._url = url
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel | None = None

    async def open(self) -> None:
        """Open with publisher confirms."""
        self._connection = await connect(self._url)
        self._channel = await self._connection.channel(publisher_confirms=True)

    async def check(self, messages: Sequence[Taken]) -> None:
        """Check the queues, and where delayed messages go in the end."""
        if self._connection is None or self._connection.is_closed:
            raise SourceLostError("the broker ended the connection")
        queues = {taken.queue for taken in messages} | {
            destination(taken.routing_key) for taken in messages if is_delaying(taken.queue)
        }
        try:
            await count_messages(self._connection, sorted(queues))
        except ShovelError as error:
            raise ShovelError(
                f"{error} at {shown(self._url)}: start the old workers first, they declare their"
                " queues"
            ) from None

    async def publish(self, messages: Sequence[Taken]) -> None:
        """Publish all at once.

        A queue deleted meanwhile would have swallowed its messages, so they are
        looked for afterwards.
        """
        now = datetime.now(UTC)
        try:
            await asyncio.gather(*(self._publish(taken, now) for taken in messages))
        except (aiormq.exceptions.AMQPError, OSError, RuntimeError) as error:
            raise SourceLostError(
                f"the broker did not take a message ({type(error).__name__})"
            ) from error
        await self.check(messages)

    async def close(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None and not connection.is_closed:
            await connection.close()

    async def _publish(self, taken: Taken, now: datetime) -> None:
        if self._channel is None:
            raise SourceLostError("not connected")
        exchange, routing_key = "", taken.queue
        if is_delaying(taken.queue) and (eta := _eta(taken, now)) is not None:
            exchange, routing_key = delayed_address(taken.queue, taken.routing_key, delay=eta - now)
        properties = VerbatimProperties(taken.properties)
        await self._channel.basic_publish(
            taken.body, exchange=exchange, routing_key=routing_key, properties=properties
        )


class RedisPublisher:
    """Publisher to the lists of kombu, at their young end."""

    transport = Transport.REDIS

    def __init__(self, url: URL) -> None:
        self._url = url
        self._client: Any = None

    async def open(self) -> None:
        self._client = redis.asyncio.Redis.from_url(
            str(self._url), socket_timeout=_TIMEOUT_SECONDS, socket_connect_timeout=_TIMEOUT_SECONDS
        )
        try:
            await self._client.execute_command("PING")
        except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, OSError) as error:
            raise SourceLostError(f"no Redis answers at {shown(self._url)}") from error
        except redis.exceptions.RedisError as error:
            raise ShovelError(f"Redis at {shown(self._url)} refuses: {error}") from None

    async def check(self, messages: Sequence[Taken]) -> None:
        """Accept any queue: Redis creates lists on demand."""

    async def publish(self, messages: Sequence[Taken]) -> None:
        """Publish in one transaction."""
        try:
            async with self._client.pipeline(transaction=True) as pipe:
                for taken in messages:
                    pipe.execute_command("LPUSH", taken.queue, taken.body)
                await pipe.execute()
        except (redis.exceptions.RedisError, OSError) as error:
            raise SourceLostError(
                f"Redis did not take the messages ({type(error).__name__})"
            ) from error

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def _eta(taken: Taken, now: datetime) -> datetime | None:
    try:
        return read_task(taken, now=now).eta
    except UnreadableTaskError:
        return None
