"""Celery on Redis: the lists of each queue, by priority, and what workers held when they died.

A message is moved, in one step, from its list into a list of this process's own, and removed from there once it is acknowledged. What a
process left in its list when it was killed is taken first by the next one of its number; number 0 takes what any left. Where two take the
same, the inbox knows the message.
"""

import asyncio
import time
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import redis.asyncio
import redis.exceptions
from yarl import URL

from statesvc.shovel.redis_layout import BINDINGS, SEPARATOR, UNACKED, UNACKED_INDEX, bound_queue, priority_lists, read_unacked
from statesvc.shovel.source import ShovelError, SourceLostError
from statesvc.shovel.source_message import Taken, Transport

_HOLDING: Final = "statesvc-shovel"
_POLL_SECONDS: Final = 0.1
_TIMEOUT_SECONDS: Final = 10
_PAGE: Final = 500
_LOST: Final = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, redis.exceptions.BusyLoadingError, OSError)

_TAKE_OVER: Final = """
if redis.call('HDEL', KEYS[1], ARGV[1]) == 1 then
    redis.call('ZREM', KEYS[2], ARGV[1])
    redis.call('LPUSH', KEYS[3], ARGV[2])
end
"""


class TakeUnacked(StrEnum):
    """Which of the messages that workers hold are taken as well."""

    EXPIRED = "expired"
    """Those that any worker would restore: held for longer than the visibility timeout."""
    ALL = "all"
    """All of them: no worker may be running any more."""


class RedisSource:
    """`process`: the number of this one among those that take from the same queues."""

    def __init__(self, url: URL, queues: Sequence[str], *, process: int, unacked: TakeUnacked, visibility_seconds: float) -> None:
        self._url = url
        self._queues = list(dict.fromkeys(queues))
        self._lists = [name for queue in self._queues for name in priority_lists(queue)]
        self._process = process
        self._unacked = unacked
        self._visibility_seconds = visibility_seconds
        self._client: Any = None
        self._left: list[Taken] = []
        self._unacked_after = 0.0

    async def open(self) -> None:
        """Finds what was left by a process that was killed."""
        self._client = redis.asyncio.Redis.from_url(
            str(self._url), socket_timeout=_TIMEOUT_SECONDS, socket_connect_timeout=_TIMEOUT_SECONDS
        )
        try:
            await self._check_queues()
            self._left = [one for key, name in await self._holdings() for one in await self._held(key, name)]
        except _LOST as error:
            raise SourceLostError(f"no Redis answers at {self._shown}: {_reason(error)}") from error
        except redis.exceptions.RedisError as error:
            raise ShovelError(f"Redis at {self._shown} refuses: {_reason(error)}") from None

    async def take(self, limit: int, *, wait_seconds: float) -> Sequence[Taken]:
        """What is left over first, then the lists, the highest priority first."""
        if self._left:
            batch, self._left = self._left[:limit], self._left[limit:]
            return batch
        until = time.monotonic() + wait_seconds
        try:
            while True:
                await self._take_unacked(limit)
                if batch := self._left or await self._move(limit):
                    self._left = []
                    return batch
                if time.monotonic() >= until:
                    return []
                await asyncio.sleep(_POLL_SECONDS)
        except _LOST as error:
            raise SourceLostError(f"Redis at {self._shown} ended the connection") from error

    async def acknowledge(self, taken: Sequence[Taken]) -> None:
        """Removes them from the list that holds them."""
        try:
            async with self._client.pipeline(transaction=False) as pipe:
                for one in taken:
                    pipe.execute_command("LREM", one.tag, 1, one.body)
                await pipe.execute()
        except _LOST as error:
            raise SourceLostError(f"Redis at {self._shown} ended the connection") from error

    async def waiting(self) -> int:
        """In the lists, in those of killed processes, and with workers that are gone."""
        try:
            holdings = [key async for key in self._client.scan_iter(match=f"{_HOLDING}.*", count=_PAGE)]
            lengths = await self._lengths([*self._lists, *holdings])
            return sum(lengths) + int(await self._client.execute_command("ZCOUNT", UNACKED_INDEX, "-inf", self._unacked_until()))
        except _LOST as error:
            raise SourceLostError(f"Redis at {self._shown} ended the connection") from error

    async def sample(self, limit: int) -> Sequence[Taken]:
        """The oldest of each list."""
        found: list[Taken] = []
        for name in self._lists:
            values = await self._client.execute_command("LRANGE", name, -max(1, limit - len(found)), -1)
            found += [_taken(name, value) for value in reversed(values)]
            if len(found) >= limit:
                break
        return found[:limit]

    async def close(self) -> None:
        """What is held is found again when it opens."""
        client, self._client, self._left = self._client, None, []
        if client is not None:
            await client.aclose()

    @property
    def _shown(self) -> str:
        return str(self._url.with_user(None).with_query(None))

    def _holding(self, name: str, process: int | None = None) -> str:
        return f"{_HOLDING}.{self._process if process is None else process}.{name}"

    async def _holdings(self) -> list[tuple[str, str]]:
        """The lists to look into, and whose messages they hold."""
        if self._process:
            return [(self._holding(name), name) for name in self._lists]
        keys = [key.decode() async for key in self._client.scan_iter(match=f"{_HOLDING}.*", count=_PAGE)]
        named = [(key, key.split(".", 2)[2]) for key in keys]
        return [(key, name) for key, name in named if name in self._lists]

    async def _held(self, key: str, name: str) -> list[Taken]:
        return [_taken(name, value, key) for value in reversed(await self._client.execute_command("LRANGE", key, 0, -1))]

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
                        pipe.execute_command("LMOVE", name, holding, "RIGHT", "LEFT")
                    # None: another consumer was faster
                    batch += [_taken(name, value, holding) for value in await pipe.execute() if value is not None]
        return batch

    def _unacked_until(self) -> str:
        return "+inf" if self._unacked is TakeUnacked.ALL else str(time.time() - self._visibility_seconds)

    async def _take_unacked(self, limit: int) -> None:
        """At most once a second, by one process."""
        if self._process or time.monotonic() < self._unacked_after:
            return
        self._unacked_after = time.monotonic() + 1
        tags = await self._client.execute_command("ZRANGEBYSCORE", UNACKED_INDEX, "-inf", self._unacked_until(), "LIMIT", 0, limit)
        for tag in tags:
            entry = await self._client.execute_command("HGET", UNACKED, tag)
            found = None if entry is None else read_unacked(entry)
            if found is None:
                continue
            queue = await self._queue_of(found.exchange, found.routing_key)
            if queue not in self._queues:
                continue
            name = queue if found.priority == 0 else f"{queue}{SEPARATOR}{found.priority}"
            holding = self._holding(name)
            await self._client.execute_command("EVAL", _TAKE_OVER, 3, UNACKED, UNACKED_INDEX, holding, tag, found.value)
            self._left += [one for one in await self._held(holding, name) if one.body == found.value]
        if len(tags) == limit:
            self._unacked_after = 0.0

    async def _queue_of(self, exchange: str, routing_key: str) -> str:
        """By the exchange's bindings; a message that lost its exchange has its queue as routing key."""
        if exchange:
            for member in await self._client.execute_command("SMEMBERS", f"{BINDINGS}{exchange}"):
                bound_by, queue = bound_queue(member)
                if bound_by == routing_key:
                    return queue
        return routing_key

    async def _check_queues(self) -> None:
        """Redis knows no empty list, but kombu notes what it declared. Raises ShovelError for a queue that is in neither."""
        await self._client.execute_command("PING")
        declared: set[str] = set()
        async for key in self._client.scan_iter(match=f"{BINDINGS}*", count=_PAGE):
            declared |= {bound_queue(member)[1] for member in await self._client.execute_command("SMEMBERS", key)}
        for queue in self._queues:
            if declared and queue not in declared and not any(await self._lengths(priority_lists(queue))):
                raise ShovelError(f"Redis at {self._shown} has no queue {queue!r}; Celery declared {', '.join(sorted(declared))}")


def _taken(name: str, value: bytes, holding: str | None = None) -> Taken:
    return Taken(transport=Transport.REDIS, queue=name, body=bytes(value), tag=holding)


def _reason(error: BaseException) -> str:
    return (str(error) or type(error).__name__).strip().split("\n", 1)[0]
