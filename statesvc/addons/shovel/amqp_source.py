"""RabbitMQ: classic and quorum queues, and the queues of Celery's native delayed delivery.

Consumers have a bounded prefetch. A batch is acknowledged with one frame; unacknowledged messages
return to their queue when the connection ends. Celery's own workers may consume from the same
queues meanwhile: the broker gives each message to a single consumer.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import aiormq.exceptions
from aiormq.abc import AbstractChannel, AbstractConnection, ConsumerCallback, DeliveredMessage
from yarl import URL

from statesvc.addons.shovel.amqp_connection import connect, count_messages, existing, shown
from statesvc.addons.shovel.amqp_properties import wire_properties
from statesvc.addons.shovel.delayed_delivery import destination, is_delaying, level_names
from statesvc.addons.shovel.source_message import ShovelError, SourceLostError, Taken, Transport

_GATHER_SECONDS: Final = 0.005
_FAILED: Final = (aiormq.exceptions.AMQPError, OSError, asyncio.CancelledError, RuntimeError)


class AmqpSource:
    """`prefetch`: how many messages the broker hands over in advance, over all queues.

    `delayed`: the prefix of the queues of native delayed delivery; None: leave them alone.
    """

    def __init__(
        self, url: URL, queues: Sequence[str], *, delayed: str | None, prefetch: int
    ) -> None:
        self._url = url
        self._named = list(dict.fromkeys(queues))
        self._queues = self._named
        self._delayed = delayed
        self._prefetch = prefetch
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel | None = None
        self._delivered: asyncio.Queue[Taken] = asyncio.Queue()
        self._acknowledged = 0
        self._is_cancelled = False

    async def open(self) -> None:
        """Check that the queues exist; consuming begins with the first `take`."""
        self._connection = await connect(self._url)
        await count_messages(self._connection, self._named)
        if self._delayed is not None:
            names = level_names(self._delayed)
            found = await existing(self._connection, names)
            if not found:
                raise ShovelError(
                    f"{shown(self._url)} has no queues of native delayed delivery ({names[0]} ...)"
                )
            self._queues = [*self._named, *found]

    async def take(self, limit: int, *, wait_seconds: float) -> Sequence[Taken]:
        channel = self._channel or await self._consume()
        if channel.is_closed or self._is_cancelled:
            raise SourceLostError("the broker ended the connection")
        batch: list[Taken] = []
        try:
            async with asyncio.timeout(wait_seconds):
                batch.append(await self._delivered.get())
        except TimeoutError:
            return batch
        if self._delivered.qsize() < limit - 1:
            # the broker is about to hand over more
            await asyncio.sleep(_GATHER_SECONDS)
        while len(batch) < limit and not self._delivered.empty():
            batch.append(self._delivered.get_nowait())
        self._check_destinations(batch)
        return batch

    async def acknowledge(self, taken: Sequence[Taken]) -> None:
        """Acknowledge, with a single frame if these are all messages since the last one."""
        channel = self._channel
        last = max(one.tag for one in taken)
        if channel is None or channel.is_closed:
            raise SourceLostError("the broker ended the connection")
        try:
            if last == self._acknowledged + len(taken):
                await channel.basic_ack(last, multiple=True)
            else:
                for one in taken:
                    await channel.basic_ack(one.tag)
        except _FAILED as error:
            raise _lost(error) from error
        self._acknowledged = last

    async def waiting(self) -> int:
        if self._connection is None or self._connection.is_closed:
            raise SourceLostError("the broker ended the connection")
        try:
            return self._delivered.qsize() + sum(
                (await count_messages(self._connection, self._queues)).values()
            )
        except _FAILED as error:
            raise _lost(error) from error

    async def sample(self, limit: int) -> Sequence[Taken]:
        """Sample from the head of each queue in turn; they go back to where they were."""
        if self._connection is None:
            raise SourceLostError("not connected")
        channel = await self._connection.channel(publisher_confirms=False)
        found: list[Taken] = []
        try:
            for queue in self._queues:
                while len(found) < limit:
                    message = await channel.basic_get(queue)
                    if message.delivery.name != "Basic.GetOk":
                        break
                    found.append(_taken(queue, message))
        finally:
            await channel.close()
        self._check_destinations(found)
        return found

    async def close(self) -> None:
        """Wait until the broker has read the acknowledgements."""
        connection, channel = self._connection, self._channel
        self._connection = self._channel = None
        self._delivered, self._acknowledged, self._is_cancelled = asyncio.Queue(), 0, False
        try:
            if channel is not None and not channel.is_closed:
                await channel.close()
            if connection is not None and not connection.is_closed:
                await connection.close()
        except (aiormq.exceptions.AMQPError, OSError, RuntimeError):
            # it is closed, one way or the other
            return

    async def _consume(self) -> AbstractChannel:
        if self._connection is None or self._connection.is_closed:
            raise SourceLostError("the broker ended the connection")
        try:
            counts = await count_messages(self._connection, self._queues)
            channel = await self._connection.channel(publisher_confirms=False)
            channel.on_consumer_cancel_callbacks.add(self._cancelled)
            for queue, share in prefetch_shares(self._prefetch, counts).items():
                # a bound for the whole channel is refused by quorum queues, so each
                # consumer has one of its own
                await channel.basic_qos(prefetch_count=share)
                await channel.basic_consume(queue, self._receiver(queue))
        except _FAILED as error:
            raise _lost(error) from error
        self._channel = channel
        return channel

    def _receiver(self, queue: str) -> ConsumerCallback:
        async def receive(message: DeliveredMessage) -> None:
            self._delivered.put_nowait(_taken(queue, message))

        return receive

    def _cancelled(self, _frame: object) -> None:
        self._is_cancelled = True

    def _check_destinations(self, batch: Sequence[Taken]) -> None:
        for taken in batch:
            wanted = destination(taken.routing_key)
            if is_delaying(taken.queue) and self._named and wanted not in self._named:
                raise ShovelError(
                    f"{taken.queue!r} delays a message for {wanted!r}, which is none of the queues"
                    " that were named: name it with --queue too, or leave out --delayed. It stays"
                    " there"
                )


def prefetch_shares(prefetch: int, counts: Mapping[str, int]) -> dict[str, int]:
    """Return each queue's prefetch: half is shared evenly, half by the waiting messages."""
    half, total = prefetch / 2, sum(counts.values())
    return {
        queue: max(
            1, int(half / len(counts) + (half * count / total if total else half / len(counts)))
        )
        for queue, count in counts.items()
    }


def _taken(queue: str, message: DeliveredMessage) -> Taken:
    return Taken(
        transport=Transport.AMQP,
        queue=queue,
        body=bytes(message.body),
        properties=wire_properties(message.header.properties),
        exchange=message.exchange or "",
        routing_key=message.routing_key or "",
        tag=message.delivery_tag,
    )


def _lost(error: BaseException) -> SourceLostError:
    if (
        isinstance(error, asyncio.CancelledError)
        and (task := asyncio.current_task()) is not None
        and task.cancelling()
    ):
        raise error
    return SourceLostError(f"the broker ended the connection ({type(error).__name__})")
