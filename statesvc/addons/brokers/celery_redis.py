"""Celery on Redis: `celery+rediss://[user:password@]host[:6379]/database/queue?task=NAME`.

A task is pushed onto its queue's list, as kombu does it. Redis answers once it has it; whether that
outlives a crash depends on its `appendfsync`. A connection is given up with the attempt whose
answer is missing.
"""

import asyncio
from typing import Any, Final

import redis.asyncio
import redis.exceptions

from statesvc.addons.brokers.celery_message import TASK_OPTION, check_task, redis_message
from statesvc.addons.brokers.kit import (
    BrokerUrl,
    CloudEvent,
    ConnectionLostError,
    Dialler,
    PublishRefusedError,
    Streams,
)
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.delivery.outgoing import Login
from statesvc.delivery.target_kind import UrlFlawError


def check(url: BrokerUrl, login: Login | None) -> None:
    """Raise `UrlFlawError` where no task can be published to such a URL."""
    database, queue = url.segments("database", "queue")
    if not (database.isascii() and database.isdecimal()):
        raise UrlFlawError("must name the database by its number, mostly 0")
    if not queue:
        raise UrlFlawError("must name the queue that a worker reads")
    check_task(url)
    if login is not None and login.password is None:
        raise UrlFlawError(
            "names a user without a password; a password alone is written :password@"
        )


async def connect(url: BrokerUrl, login: Login | None, dialler: Dialler) -> "CeleryRedis":
    """Open a connection, logged in, to the database."""
    connection: Any = _Connection(
        await dialler.open(url.host, url.port, tls=url.tls),
        db=int(url.path[0]),
        username=(login.user or None) if login is not None else None,
        password=login.password if login is not None else None,
        protocol=2,
        socket_timeout=None,
    )
    try:
        await connection.connect()
    except redis.exceptions.RedisError as error:
        raise _failure(error) from error
    return CeleryRedis(connection, queue=url.path[1], task=url.options[TASK_OPTION])


class CeleryRedis:
    """An open connection, for a task and queue. Publishers take turns: answers come in order."""

    def __init__(self, connection: "_Connection", *, queue: str, task: str) -> None:
        self._connection: Any = connection
        self._queue = queue
        self._task = task
        self._turn = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        return bool(self._connection.is_connected)

    async def publish(self, event: CloudEvent) -> str:
        """Wait until Redis has it; return how many wait in the list."""
        async with self._turn:
            if not self.is_open:
                raise ConnectionLostError
            try:
                await self._connection.send_command(
                    "LPUSH", self._queue, redis_message(event, task=self._task, queue=self._queue)
                )
                length = await self._connection.read_response()
            except redis.exceptions.RedisError as error:
                raise _failure(error) from error
            except BaseException:
                # its answer may still come, and would be taken for the next one's
                await self._connection.disconnect(nowait=True)
                raise
        return f"{length} in the list"

    async def close(self) -> None:
        await self._connection.disconnect()


class _Connection(redis.asyncio.Connection):
    """Speaks over streams that our own check let through, and never opens any itself."""

    # the client's options
    def __init__(self, streams: Streams, **options: Any) -> None:  # noqa: ANN401
        self._streams = streams
        super().__init__(**options)

    async def _connect(self) -> None:
        self._reader, self._writer = self._streams


_REFUSALS: Final = (
    (redis.exceptions.AuthenticationError, AttemptOutcome.DENIED),
    (redis.exceptions.NoPermissionError, AttemptOutcome.DENIED),
    (redis.exceptions.OutOfMemoryError, AttemptOutcome.NOT_STORED),
    (redis.exceptions.ReadOnlyError, AttemptOutcome.NOT_STORED),
    (redis.exceptions.ResponseError, AttemptOutcome.REFUSED),
)


def _failure(error: redis.exceptions.RedisError) -> Exception:
    """Classify an error of the client: refused by the server, in its own
    words, or a lost connection.
    """
    for kind, outcome in _REFUSALS:
        if isinstance(error, kind):
            return PublishRefusedError(outcome, str(error))
    return ConnectionLostError(str(error))
