r"""Celery on Redis: the lists of each queue, by priority.

A queue is a list for each priority, `celery` and `celery\x06\x163` ..., the oldest at the right. A
message is moved, in one step, from its list into a list of the shovel's own, and removed from
there once it is acknowledged. Messages that a killed run left there are taken first by the next
run. Messages that workers hold, above all ETAs, are Celery's: a worker that ends returns its own,
and any worker returns those of killed ones.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

import redis.asyncio
import redis.exceptions
from yarl import URL

from statesvc.addons.shovel.source_message import ShovelError, SourceLostError, Taken, Transport

# Prefix of the lists of unacknowledged messages, `statesvc-shovel.0.QUEUE`. Runs of 0.1 numbered
# their processes.
_HOLDING: Final = "statesvc-shovel"
_POLL_SECONDS: Final = 0.1
_TIMEOUT_SECONDS: Final = 10
_PAGE: Final = 500
_LOST: Final = (
    redis.exceptions.ConnectionError,
    redis.exceptions.TimeoutError,
    redis.exceptions.BusyLoadingError,
    OSError,
)

# Between the routing key and the queue of a binding, and before a list's priority.
_SEPARATOR: Final = "\x06\x16"
_PRIORITIES: Final = range(1, 10)
_BINDINGS: Final = "_kombu.binding."


class RedisSource:
    def __init__(self, url: URL, queues: Sequence[str]) -> None:
        self._url = url
        self._queues = list(dict.fromkeys(queues))
        self._lists = [name for queue in self._queues for name in _priority_lists(queue)]
        self._client: Any = None
        self._left: list[Taken] = []

    async def open(self) -> None:
        """Find messages left by a killed run."""
        self._client = redis.asyncio.Redis.from_url(
            str(self._url), socket_timeout=_TIMEOUT_SECONDS, socket_connect_timeout=_TIMEOUT_SECONDS
        )
        try:
            await self._check_queues()
            self._left = [
                one
                for key, name in await self._holdings()
                for one in await self._holding_messages(key, name)
            ]
        except _LOST as error:
            raise SourceLostError(f"no Redis answers at {self._shown}: {_reason(error)}") from error
        except redis.exceptions.RedisError as error:
            raise ShovelError(f"Redis at {self._shown} refuses: {_reason(error)}") from None

    async def take(self, limit: int, *, wait_seconds: float) -> Sequence[Taken]:
        """Take messages left over first, then the lists, the highest priority first."""
        if self._left:
            # of a killed run: they left their queues first, so they go first
            batch, self._left = self._left[:limit], self._left[limit:]
            return batch
        until = time.monotonic() + wait_seconds
        try:
            while True:
                if batch := await self._move(limit):
                    return batch
                if time.monotonic() >= until:
                    return []
                await asyncio.sleep(_POLL_SECONDS)
        except _LOST as error:
            raise SourceLostError(f"Redis at {self._shown} ended the connection") from error

    async def acknowledge(self, taken: Sequence[Taken]) -> None:
        try:
            # not a transaction: each removal stands for itself, and MULTI would block other clients
            async with self._client.pipeline(transaction=False) as pipe:
                for one in taken:
                    # by value: a list has no ids. Equal bodies are the same task, and the inbox
                    # knows the second
                    pipe.execute_command("LREM", one.tag, 1, one.body)
                await pipe.execute()
        except _LOST as error:
            raise SourceLostError(f"Redis at {self._shown} ended the connection") from error

    async def waiting(self) -> int:
        """Count in the lists, and in those of killed runs."""
        try:
            holdings = [
                key async for key in self._client.scan_iter(match=f"{_HOLDING}.*", count=_PAGE)
            ]
            return sum(await self._lengths([*self._lists, *holdings]))
        except _LOST as error:
            raise SourceLostError(f"Redis at {self._shown} ended the connection") from error

    async def sample(self, limit: int) -> Sequence[Taken]:
        """Sample the oldest of each list."""
        found: list[Taken] = []
        for name in self._lists:
            values = await self._client.execute_command(
                "LRANGE", name, -max(1, limit - len(found)), -1
            )
            found += [_taken(name, value) for value in reversed(values)]
            if len(found) >= limit:
                break
        return found[:limit]

    async def close(self) -> None:
        """Close; held messages are found again at the next opening."""
        client, self._client, self._left = self._client, None, []
        if client is not None:
            await client.aclose()

    @property
    def _shown(self) -> str:
        return str(self._url.with_user(None).with_query(None))

    def _holding(self, name: str) -> str:
        return f"{_HOLDING}.0.{name}"

    async def _holdings(self) -> list[tuple[str, str]]:
        """Return the holding lists, and the queue of each."""
        keys = [
            key.decode() async for key in self._client.scan_iter(match=f"{_HOLDING}.*", count=_PAGE)
        ]
        named = [(key, key.split(".", 2)[2]) for key in keys]
        return [(key, name) for key, name in named if name in self._lists]

    async def _holding_messages(self, key: str, name: str) -> list[Taken]:
        return [
            _taken(name, value, key)
            for value in reversed(await self._client.execute_command("LRANGE", key, 0, -1))
        ]

    async def _lengths(self, names: Sequence[str | bytes]) -> list[int]:
        async with self._client.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.execute_command("LLEN", name)
            return [int(length) for length in await pipe.execute()]

    async def _move(self, limit: int) -> list[Taken]:
        batch: list[Taken] = []
        for name, length in zip(self._lists, await self._lengths(self._lists), strict=True):
            wanted = min(length, limit - len(batch))
            if wanted:
                holding = self._holding(name)
                async with self._client.pipeline(transaction=False) as pipe:
                    for _ in range(wanted):
                        # atomic: a message is in one of the lists whenever this process dies. kombu
                        # pushes left and takes right
                        pipe.execute_command("LMOVE", name, holding, "RIGHT", "LEFT")
                    # None: another consumer was faster
                    batch += [
                        _taken(name, value, holding)
                        for value in await pipe.execute()
                        if value is not None
                    ]
        return batch

    async def _check_queues(self) -> None:
        """Check that the queues exist. Raises ShovelError for an unknown queue.

        Redis has no empty lists, but kombu records its declarations.
        """
        await self._client.execute_command("PING")
        declared: set[str] = set()
        async for key in self._client.scan_iter(match=f"{_BINDINGS}*", count=_PAGE):
            declared |= {
                member.decode("utf-8", "replace").rpartition(_SEPARATOR)[2]
                for member in await self._client.execute_command("SMEMBERS", key)
            }
        for queue in self._queues:
            if (
                declared
                and queue not in declared
                and not any(await self._lengths(_priority_lists(queue)))
            ):
                raise ShovelError(
                    f"Redis at {self._shown} has no queue {queue!r}; Celery declared"
                    f" {', '.join(sorted(declared))}"
                )


def _priority_lists(queue: str) -> list[str]:
    """Return the lists of a queue, the highest priority first."""
    return [queue, *(f"{queue}{_SEPARATOR}{priority}" for priority in _PRIORITIES)]


def _taken(name: str, value: bytes, holding: str | None = None) -> Taken:
    return Taken(transport=Transport.REDIS, queue=name, body=bytes(value), tag=holding)


def _reason(error: BaseException) -> str:
    return (str(error) or type(error).__name__).strip().split("\n", 1)[0]
