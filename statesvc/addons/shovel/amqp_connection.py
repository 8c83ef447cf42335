"""Connections to RabbitMQ, and its refusals in words."""

from collections.abc import Sequence
from typing import Final

import aiormq
import aiormq.exceptions
from aiormq.abc import AbstractChannel, AbstractConnection
from yarl import URL

from statesvc.addons.shovel.source_message import ShovelError, SourceLostError

_HEARTBEAT_SECONDS: Final = 20
_CONNECT_SECONDS: Final = 10


def shown(url: URL) -> str:
    """Return a broker's URL without its login."""
    return str(url.with_user(None).with_query(None))


async def connect(url: URL) -> AbstractConnection:
    """Connect. Raises ShovelError where it is refused, SourceLostError where no broker answers."""
    connection = aiormq.Connection(
        url.update_query(
            heartbeat=_HEARTBEAT_SECONDS,
            name="statesvc shovel",
            connection_timeout=_CONNECT_SECONDS * 1000,
        )
    )
    try:
        await connection.connect()
    except (aiormq.exceptions.AuthenticationError, aiormq.exceptions.ProbableAuthenticationError):
        raise ShovelError(
            f"the broker {shown(url)} refuses the login of {url.user or 'guest'!r}: check user and"
            " password"
        ) from None
    except (aiormq.exceptions.ConnectionNotAllowed, aiormq.exceptions.InvalidFrameError):
        raise ShovelError(
            f"the broker {shown(url)} has no such virtual host, or {url.user or 'guest'!r} may not"
            " enter it"
        ) from None
    except (aiormq.exceptions.AMQPError, OSError, TimeoutError) as error:
        raise SourceLostError(f"no broker answers at {shown(url)}: {_reason(error)}") from error
    return connection


async def count_messages(connection: AbstractConnection, queues: Sequence[str]) -> dict[str, int]:
    """Count the ready messages of each queue. Raises ShovelError where a queue does not exist."""
    channel = await connection.channel(publisher_confirms=False)
    try:
        return {queue: await _count(channel, queue) for queue in queues}
    finally:
        if not channel.is_closed:
            await channel.close()


async def existing(connection: AbstractConnection, queues: Sequence[str]) -> list[str]:
    found = []
    for queue in queues:
        try:
            await count_messages(connection, [queue])
        except ShovelError:
            continue
        found.append(queue)
    return found


async def _count(channel: AbstractChannel, queue: str) -> int:
    try:
        declared = await channel.queue_declare(queue, passive=True)
    except aiormq.exceptions.ChannelNotFoundEntity:
        raise ShovelError(f"the broker has no queue {queue!r} in this virtual host") from None
    except aiormq.exceptions.ChannelAccessRefused:
        raise ShovelError(f"this login may not read the queue {queue!r}") from None
    except (aiormq.exceptions.AMQPError, OSError) as error:
        raise SourceLostError(f"the broker is gone: {_reason(error)}") from error
    return declared.message_count or 0


def _reason(error: BaseException) -> str:
    return (str(error) or type(error).__name__).strip().split("\n", 1)[0]
