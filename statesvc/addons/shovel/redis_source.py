"""Celery on Redis: the lists of each queue, by priority, and messages that dead workers held.

A message is moved, in one step, from its list into a list of the shovel's own, and removed from
there once it is acknowledged. Messages that a killed run left there are taken first by the next
run. Where two take the same message, the inbox recognises it.
"""

import asyncio
import time
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import redis.asyncio
import redis.exceptions
from yarl import URL

from statesvc.addons.shovel.redis_layout import (
    BINDINGS,
    SEPARATOR,
    UNACKED,
    UNACKED_INDEX,
    bound_queue,
    priority_lists,
    read_unacked,
)
from statesvc.addons.shovel.source_message import (
    ShovelError,
    SourceLostError,
    Taken,
    Transport,
    Unacknowledged,
)

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

_TAKE_OVER: Final = """
if redis.call('HDEL', KEYS[1], ARGV[1]) == 1 then
    redis.call('ZREM', KEYS[2], ARGV[1])
    redis.call('LPUSH', KEYS[3], ARGV[2])
end
"""


class TakeUnacked(StrEnum):
    """Messages held by workers that are taken as well."""

    EXPIRED = "expired"
    """Those that any worker would restore: held for longer than the visibility timeout."""
    ALL = "all"
    """All of them: no worker may be running any more."""


class RedisSource:
    def __init__(
        self,
        url: URL,
        queues: Sequence[str],
        *,
        unacked: TakeUnacked,
        visibility_seconds: float,
    ) -> None:
        self._url = url
        self._queues = list(dict.fromkeys(queues))
        self._lists = [name for queue in self._queues for name in priority_lists(queue)]
        self._unacked = unacked
        self._visibility_seconds = visibility_seconds
        self._client: Any = None
        self._left: list[Taken] = []
        self._unacked_after = 0.0
        self._unacked_passed = 0

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
                # before the lists: a worker that died took them before what waits now
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
        """Count in the lists, in those of killed runs, and with workers that are gone."""
        try:
            holdings = [
                key async for key in self._client.scan_iter(match=f"{_HOLDING}.*", count=_PAGE)
            ]
            lengths = await self._lengths([*self._lists, *holdings])
            return sum(lengths) + int(
                await self._client.execute_command(
                    "ZCOUNT", UNACKED_INDEX, "-inf", self._unacked_until()
                )
            )
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

    async def unacknowledged(self, limit: int) -> Unacknowledged | None:
        """Return messages in `unacked` that `waiting` does not count.

        Workers have held those for longer than the visibility timeout.
        """
        until, count = float(self._unacked_until()), 0
        found: list[Taken] = []
        async for tag, entry in self._client.hscan_iter(UNACKED, count=_PAGE):
            since = await self._client.execute_command("ZSCORE", UNACKED_INDEX, tag)
            message = (
                None
                if since is not None and float(since) <= until
                else await self._unacked_message(entry)
            )
            if message is not None:
                count += 1
                found += [message] if len(found) < limit else []
        return Unacknowledged(count, found)

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

    def _unacked_until(self) -> str:
        return (
            "+inf"
            if self._unacked is TakeUnacked.ALL
            else str(time.time() - self._visibility_seconds)
        )

    async def _take_unacked(self, limit: int) -> None:
        """Take unacknowledged messages, at most once a second."""
        if time.monotonic() < self._unacked_after:
            return
        self._unacked_after = time.monotonic() + 1
        place = ("LIMIT", self._unacked_passed, limit)
        tags = await self._client.execute_command(
            "ZRANGEBYSCORE", UNACKED_INDEX, "-inf", self._unacked_until(), *place
        )
        for tag in tags:
            entry = await self._client.execute_command("HGET", UNACKED, tag)
            message = None if entry is None else await self._unacked_message(entry)
            if message is None:
                # it stays, and must not stand before what comes behind it for ever
                self._unacked_passed += 1
                continue
            holding = self._holding(message.queue)
            await self._client.execute_command(
                "EVAL", _TAKE_OVER, 3, UNACKED, UNACKED_INDEX, holding, tag, message.body
            )
            self._left += [
                one
                for one in await self._holding_messages(holding, message.queue)
                if one.body == message.body
            ]
        if len(tags) == limit:
            self._unacked_after = 0.0
        else:
            self._unacked_passed = 0

    async def _unacked_message(self, entry: bytes) -> Taken | None:
        """Return a worker's message as its queue had it.

        None for a message of another queue or with another layout.
        """
        found = read_unacked(entry)
        if found is None:
            return None
        queue = await self._queue_of(found.exchange, found.routing_key)
        if queue not in self._queues:
            return None
        return _taken(
            queue if found.priority == 0 else f"{queue}{SEPARATOR}{found.priority}", found.value
        )

    async def _queue_of(self, exchange: str, routing_key: str) -> str:
        """Return the queue by the exchange's bindings; a message that lost its exchange has
        its queue as routing key.
        """
        if exchange:
            for member in await self._client.execute_command("SMEMBERS", f"{BINDINGS}{exchange}"):
                bound_by, queue = bound_queue(member)
                if bound_by == routing_key:
                    return queue
        return routing_key

    async def _check_queues(self) -> None:
        """Check that the queues exist. Raises ShovelError for an unknown queue.

        Redis has no empty lists, but kombu records its declarations.
        """
        await self._client.execute_command("PING")
        declared: set[str] = set()
        async for key in self._client.scan_iter(match=f"{BINDINGS}*", count=_PAGE):
            declared |= {
                bound_queue(member)[1]
                for member in await self._client.execute_command("SMEMBERS", key)
            }
        for queue in self._queues:
            if (
                declared
                and queue not in declared
                and not any(await self._lengths(priority_lists(queue)))
            ):
                raise ShovelError(
                    f"Redis at {self._shown} has no queue {queue!r}; Celery declared"
                    f" {', '.join(sorted(declared))}"
                )


def _taken(name: str, value: bytes, holding: str | None = None) -> Taken:
    return Taken(transport=Transport.REDIS, queue=name, body=bytes(value), tag=holding)


def _reason(error: BaseException) -> str:
    return (str(error) or type(error).__name__).strip().split("\n", 1)[0]
