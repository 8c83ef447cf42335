"""Wakers and listeners that end with their test, and what another listener hears meanwhile."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest
from psycopg import AsyncConnection

from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.waker import Waker
from statesvc.database.wakeups.wakeup import INBOX, LOG, OUTBOX
from tests.world.waiting import until

Start = Callable[[Any], Awaitable[Any]]


class Heard(NamedTuple):
    channel: str
    payload: str
    at: float


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Start wakers, and listeners until they are up."""
    async with AsyncExitStack() as stack:

        async def start(one: Waker | Listener) -> Waker | Listener:
            await one.start()
            stack.push_async_callback(one.stop)
            if isinstance(one, Listener):
                await until(lambda: one.is_up)
            return one

        yield start


@pytest.fixture
async def heard(database: Any) -> AsyncIterator[list[Heard]]:
    """Collect what a plain psycopg connection hears."""
    notifications: list[Heard] = []
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        for channel in (INBOX, OUTBOX, LOG):
            await connection.execute(f"LISTEN {channel}")

        async def hear() -> None:
            async for notification in connection.notifies():
                heard_at = time.monotonic()
                notifications.append(Heard(notification.channel, notification.payload, heard_at))

        task = asyncio.create_task(hear())
        yield notifications
        task.cancel()
        await asyncio.wait([task])
