"""The look-out beside a worker: a thread that claims what quiet carriers send while the worker's loop is full of a flood.

Batches hold the loop for milliseconds at a time, several of them in turn, and whatever is woken there waits for all of them. A thread
waits for the interpreter's lock alone. It has a loop, a listener and a connection of its own; it decides nothing but whether to look, and
hands what it claimed to the worker's loop.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

import structlog

from statesvc.database.pool import Pool
from statesvc.database.wakeups.channels import INBOX
from statesvc.database.wakeups.listener import Listener
from statesvc.inbox.claim import Claim, Claimed, claim
from statesvc.worker.express import Looks

SWITCH_SECONDS: Final = 0.0005
"""How long the thread waits for the interpreter's lock, the process over (Python's own default is ten times that)."""
_STOP_SECONDS: Final = 2.0

Ask = Callable[[frozenset[str]], Claim]
Take = Callable[[Claimed], None]

log = structlog.get_logger()


class Lookout:
    """`make_pool` gives a pool that is not open yet; one connection of it is used. Methods are called in the worker's loop."""

    def __init__(self, listen_dsn: str, make_pool: Callable[[], Pool]) -> None:
        self._make_pool = make_pool
        self._beside: frozenset[str] | None = None
        self._claiming = asyncio.Lock()
        self._looks = Looks(counted_at=time.monotonic())
        self._listener = Listener(listen_dsn, [INBOX])
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        """From `start` on."""
        self._task: asyncio.Task[None] | None = None

    def start(self, ask: Ask, take: Take) -> None:
        """`ask` gives the claim beside some carriers; `take` is called in this loop with what it brought."""
        sys.setswitchinterval(SWITCH_SECONDS)
        home = asyncio.get_running_loop()

        def hand_over(claimed: Claimed) -> None:
            home.call_soon_threadsafe(take, claimed)

        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._live, args=(ask, hand_over), name="lookout", daemon=True)
        self._thread.start()

    def pass_by(self, carriers: frozenset[str] | None) -> None:
        """From now on it claims for all but these carriers; None: nothing."""
        self._beside = carriers

    def again(self) -> None:
        """It may claim again: what it heard while it might not is looked after."""
        if self._runs:
            self._loop.call_soon_threadsafe(self._listener.event(INBOX).set)

    async def still(self) -> None:
        """Returns when it is not claiming and what it claimed is handed over. The caller has said before that it may claim nothing."""
        if self._runs:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._unlocked(), self._loop))

    async def stop(self) -> None:
        """A claim under way is waited for, so that its messages need not wait for the end of their lease. Safe to call twice."""
        self._beside = None
        if not self._runs:
            return
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self.still()
        except TimeoutError:
            log.warning("lookout_hangs")
        self._loop.call_soon_threadsafe(self._cancel)
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.to_thread(thread.join, _STOP_SECONDS)

    @property
    def _runs(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _deaf(self, listening: asyncio.Task[None]) -> None:
        """The listener ended, by a defect if it was not cancelled; without it nothing is heard."""
        if not listening.cancelled():
            log.error("lookout_deaf", exc_info=listening.exception())
            self._cancel()

    async def _unlocked(self) -> None:
        async with self._claiming:
            pass

    def _live(self, ask: Ask, hand_over: Take) -> None:
        try:
            self._task = self._loop.create_task(self._look_out(ask, hand_over))
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        except Exception:
            # without it quiet carriers wait longer, that is all
            log.exception("lookout_ended")
        finally:
            self._loop.close()

    async def _look_out(self, ask: Ask, hand_over: Take) -> None:
        pool = self._make_pool()
        await self._listener.start()
        if self._listener.task is not None:
            self._listener.task.add_done_callback(self._deaf)
        await pool.open()
        try:
            woken = self._listener.event(INBOX)
            while True:
                await woken.wait()
                woken.clear()
                if pause := self._looks.pause(time.monotonic()):
                    await asyncio.sleep(pause)
                try:
                    async with self._claiming:
                        await self._look(pool, ask, hand_over)
                except Exception:
                    # the next claim of all finds it
                    log.warning("express_claim_failed", exc_info=True)
        finally:
            await self._listener.stop()
            await pool.close()

    async def _look(self, pool: Pool, ask: Ask, hand_over: Take) -> None:
        beside = self._beside
        if beside is None:
            return
        named = self._listener.heard(INBOX)
        if named is not None and named <= beside:
            return
        self._looks.looked(time.monotonic())
        async with pool.connection() as connection:
            claimed = await claim(connection, ask(beside))
        if claimed.messages or claimed.buried:
            hand_over(claimed)
