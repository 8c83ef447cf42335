"""Sends wake-ups, at most a statement per interval for any number of requests.

The first request goes out at once (leading edge); requests within the interval after it go out
together at its end (trailing edge), so the last is never lost. While the server is away, requests
wait for the reconnect. Listeners of this machine hear each request at once (`local`). Where one
has, and on channels whose listeners keep their own pace, the interval is long.
"""

import asyncio
import random
import secrets
from pathlib import Path
from typing import Final

import psycopg
import structlog

from statesvc.background.waiting import cancel_fully, set_within
from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.local import LocalWaker
from statesvc.database.wakeups.wakeup import UNHURRIED, reconnect_delays

DEFAULT_INTERVAL_SECONDS: Final = 0.010
LONG_INTERVAL_SECONDS: Final = 0.25
_FLUSH_SECONDS: Final = 1.0

_log = structlog.get_logger()


class Waker:
    """`wake` is called after commit, from the same event loop; a task of its own does the rest.

    `over`: the listener that lends its connection. `folder`: of this machine's listeners (`local`).
    """

    def __init__(
        self,
        over: Listener,
        *,
        interval_seconds: float = DEFAULT_INTERVAL_SECONDS,
        folder: Path | None = None,
    ) -> None:
        self._over = over
        self._interval_seconds = interval_seconds
        self._sender = secrets.token_hex(8)
        self._local = None if folder is None else LocalWaker(folder, sender=self._sender)
        self._wanted: dict[str, str] = {}
        """Channels, with the sender's id where a listener of this machine has heard it."""
        self._dirty = asyncio.Event()
        self._urgent = asyncio.Event()
        """A wake-up that nobody has heard yet."""
        self._task: asyncio.Task[None] | None = None
        self._jitter = random.Random()  # noqa: S311 - spreads reconnects, guards nothing

    async def start(self) -> None:
        """Start to send, as soon as the listener is up."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="waker")

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The sending task, so that its owner notices when it ends."""
        return self._task

    def wake(self, channel: str) -> None:
        """Request a wake-up on `channel`. Cheap, never fails, never waits."""
        reached = self._local is not None and self._local.wake(channel)
        if not reached:
            self._wanted[channel] = ""
            if channel not in UNHURRIED:
                self._urgent.set()
        else:
            # not over an empty payload: a wake-up that nobody heard yet must reach everybody
            self._wanted.setdefault(channel, self._sender)
        self._dirty.set()

    async def stop(self) -> None:
        """Send the wake-ups still requested if that takes less than a second, then close.

        Safe to call twice, and before `start`.
        """
        task, self._task = self._task, None
        if task is not None:
            # the loop first: two senders on one connection would mix their statements
            await cancel_fully(task)
        try:
            if self._wanted and self._over.is_up:
                async with asyncio.timeout(_FLUSH_SECONDS):
                    await self._send()
        except (psycopg.Error, TimeoutError):
            _log.info("wakeup_not_flushed")
        if self._local is not None:
            self._local.close()

    async def _run(self) -> None:
        delays = reconnect_delays(self._jitter)
        while True:
            try:
                await self._dirty.wait()
                await self._send()
            except (psycopg.Error, OSError) as error:
                _log.warning("wakeup_connection_lost", error=error)
                await asyncio.sleep(next(delays))
            else:
                delays = reconnect_delays(self._jitter)
                # after sending: the first request of a burst goes out at once, the rest at the end
                # of this pause
                await asyncio.sleep(self._interval_seconds)
                await set_within(
                    self._urgent, max(0.0, LONG_INTERVAL_SECONDS - self._interval_seconds)
                )

    async def _send(self) -> None:
        # taken before the statement: a request that comes while it runs belongs to the next
        wanted, self._wanted = self._wanted, {}
        self._dirty.clear()
        self._urgent.clear()
        try:
            await self._over.send(wanted)
        except BaseException:
            # to be sent again: with nothing of the sender, for what was heard here may
            # be known to nobody else
            self._wanted = dict.fromkeys([*wanted, *self._wanted], "")
            self._dirty.set()
            self._urgent.set()
            raise
