"""The sealer's loop: take the lead, then seal and sign whenever something was
committed, until stopped.

```
standby --lock--> take stock --agrees--> [ wait for a wake-up or the sweep > seal > sign > publish ] --connection lost--> standby
                      +--contradicts--> refuse, logged as an error; check again later
```
The leader's lock and its writes are on one connection: a sealer that loses the lead
can write nothing more.
"""

import asyncio
import random
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import psycopg
import structlog
from psycopg import AsyncConnection

from events.crypto.sealing import MasterKeys
from statesvc.background.waiting import set_within
from statesvc.database.session_settings import SessionLimits
from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.waker import Waker
from statesvc.database.wakeups.wakeup import LOG, SEALED, connect_direct, reconnect_delays
from statesvc.sealer.clock_check import ClockCheck, ClockError
from statesvc.sealer.leadership import (
    SILENT_SECONDS,
    Publication,
    end_session,
    publish,
    signers_of,
    silent_lead,
    take_stock,
)
from statesvc.sealer.seal import (
    SQL,
    ForgottenBatches,
    ForkError,
    RefusalError,
    SealedLog,
    SealMark,
    SealPass,
    read_writers,
    seal,
)
from statesvc.telemetry.metrics import Telemetry

_STANDBY_SECONDS: Final = 5.0
_ENDED_SECONDS: Final = 0.2
# A lead asks the server at each sweep at least.
_SILENT_SWEEPS: Final = 1.5
_REFUSED_SECONDS: Final = 30.0
# Pause before clocks that disagreed are compared again.
_CLOCK_SECONDS: Final = 5.0
_SWEEP_SECONDS_WITHOUT_LISTENER: Final = 0.5
_PREPARED_AFTER: Final = 2
# Least pause after an empty pass: many wake-ups are not about entries.
_EMPTY_SECONDS: Final = 0.05

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class SealerPace:
    """Least seconds between two heads, and most between full reads of the queue."""

    interval_seconds: float
    sweep_seconds: float


class Sealer:
    """Runs until `stop`. `refusal`: the reason why it cannot seal, if any."""

    def __init__(
        self,
        direct_dsn: str,
        master: MasterKeys,
        publication: Publication,
        *,
        listener: Listener,
        waker: Waker,
        telemetry: Telemetry,
        pace: SealerPace,
        limits: SessionLimits,
        clock: ClockCheck | None = None,
    ) -> None:
        self._dsn = direct_dsn
        self._limits = limits
        self._master = master
        self._publication = publication
        self._listener = listener
        self._woken = listener.event(LOG)
        self._waker = waker
        self._telemetry = telemetry
        self._pace = pace
        self.clock = clock or ClockCheck()
        self._stopping = asyncio.Event()
        self._jitter = random.Random()  # noqa: S311 - spreads tries, guards nothing
        self._watching: list[asyncio.Event] = []
        self.leads = False
        self.refusal: str | None = None
        self.blocked: str | None = None
        """Stopped session that has the lead, if there is one."""
        self._pid: int | None = None
        """The server's process of the last session that led."""
        self._ended: int | None = None

    def watch(self) -> asyncio.Event:
        """Return an event that is set whenever this process has signed a head."""
        self._watching.append(asyncio.Event())
        return self._watching[-1]

    def stop(self) -> None:
        """End `run` after the pass in progress. Idempotent, safe before `run`."""
        self._stopping.set()
        self._woken.set()

    async def run(self) -> None:
        """Seal until stopped, through database errors."""
        delays = reconnect_delays(self._jitter)
        while not self._stopping.is_set():
            try:
                # not through a pooler in transaction mode, which could move the advisory lock to
                # another session
                connection = await connect_direct(
                    self._dsn, application_name="statesvc sealer", limits=self._limits
                )
                try:
                    # past any pooler, and the same few statements for as long as it leads
                    connection.prepare_threshold = _PREPARED_AFTER
                    if await self._take_lead(connection):
                        delays = reconnect_delays(self._jitter)
                        await self._lead(connection)
                # kept in the database, so that notifiers of every process stop, and a restart
                # does not forget it
                except ForkError as error:
                    await connection.execute(SQL["refuse"], {"why": str(error)})
                    raise
                finally:
                    # before the close: the lock goes with the session, and another may lead at
                    # that moment
                    self.leads = False
                    await connection.close()
            except RefusalError as error:
                # one line a cause: it is checked again each half minute, for as long as nobody
                # mends it
                if self.refusal != str(error):
                    _log.error("sealer_refuses", why=str(error))
                self.refusal = str(error)
                await set_within(
                    self._stopping,
                    _CLOCK_SECONDS if isinstance(error, ClockError) else _REFUSED_SECONDS,
                )
            except (psycopg.Error, OSError) as error:
                _log.warning("sealing_failed", error=error)
                await set_within(self._stopping, next(delays))

    async def _take_lead(self, connection: AsyncConnection[Any]) -> bool:
        """Stand by until the lead is free; return False when stopped before."""
        while not self._stopping.is_set():
            row = await (await connection.execute(SQL["lead"])).fetchone()
            if row is not None and row[0]:
                self._pid, self.blocked = row[1], None
                return True
            # of another leader's log nothing is known here; a refusal of its own it shows itself
            self.refusal = None
            if await self._end_silent_lead(connection):
                await set_within(self._stopping, _ENDED_SECONDS)
                continue
            # polled: the end of a session wakes nobody who waits with `pg_try_advisory_lock`
            await set_within(self._stopping, _STANDBY_SECONDS * self._jitter.uniform(0.8, 1.2))
        return False

    async def _end_silent_lead(self, connection: AsyncConnection[Any]) -> bool:
        """Return whether the lead may be free now.

        A session that was ended before and still has it is stopped: then `blocked` names it.
        """
        # a live leader asks at each sweep, so this cannot end one that only had no entries
        silent_seconds = max(SILENT_SECONDS, _SILENT_SWEEPS * self._pace.sweep_seconds)
        lead = await silent_lead(connection, silent_seconds=silent_seconds, lost_pid=self._pid)
        if lead is None:
            self.blocked = self._ended = None
            return False
        await end_session(connection, lead)
        # the first time it may just need a moment; one that stays is a stopped process, which no
        # signal ends
        if self._ended != lead.pid:
            self._ended = lead.pid
            _log.warning("silent_lead_ended", pid=lead.pid, seconds=lead.seconds)
            return True
        if self.blocked is None:
            _log.error("sealer_blocked", pid=lead.pid, seconds=lead.seconds)
        self.blocked = lead.sentence
        return False

    async def _lead(self, connection: AsyncConnection[Any]) -> None:
        # a fork is found whatever the time is
        sealed, head = await take_stock(connection, self._master, self._publication)
        # after the stock agreed: this is what lets notifiers go on
        await connection.execute(SQL["accept"])
        await self.clock.check(connection)
        self.leads, self.refusal = True, None
        _log.info("sealer_leads", count=sealed.tree.size)
        if sealed.tree.size > (head.tree_size if head else 0):
            # its predecessor ended between the two commits of a pass
            await self._sign(connection, sealed)
        mark, forgotten = SealMark(), ForgottenBatches()
        swept_at = float("-inf")
        while not self._stopping.is_set():
            # before the queue is read: a batch that commits meanwhile must cause another pass
            self._woken.clear()
            began = time.monotonic()
            sweeps = began >= swept_at + self._pace.sweep_seconds
            swept_at = began if sweeps else swept_at
            # before each pass: the time of sealing stays for ever, and `as_of` reads by it
            await self.clock.check(connection)
            # before the pass's snapshot: read after it, a batch that committed in between would
            # be skipped for good
            writers = await read_writers(connection)
            if sweeps or not forgotten.caught_up:
                found = await forgotten.requeue(connection, writers)
                if found:
                    _log.error("forgotten_batches_queued", count=len(found), batch_id=found[0])
                    # forgotten ids lie below the mark
                    sweeps = True
            done = await seal(connection, sealed, from_id=0 if sweeps else mark.from_id)
            mark.passed(writers, done)
            if done.batches:
                # only what was committed: a failed pass leaves the tree in memory as the
                # database has it
                sealed = done.sealed
                await self._sign(connection, sealed)
                self._count(done)
            # a backlog is sealed without a pause
            if not done.full and forgotten.caught_up:
                pace = (
                    self._pace.interval_seconds
                    if done.batches
                    else min(_EMPTY_SECONDS, self._pace.interval_seconds)
                )
                # from the start of the pass: heads come at the interval, however long sealing
                # takes
                await self._rest(began + pace - time.monotonic())

    async def _sign(self, connection: AsyncConnection[Any], sealed: SealedLog) -> None:
        signers = await signers_of(connection, self._master)
        await publish(connection, sealed, signers, self._publication)
        # after the checkpoint: a reader that wakes must find the head that it is told of
        self._waker.wake(SEALED)
        for event in self._watching:
            event.set()

    def _count(self, done: SealPass) -> None:
        self._telemetry.sealed_entries.add(done.entries)
        for batch_id in done.back_dated:
            _log.error("batch_back_dated", batch_id=batch_id)
        if done.oldest is not None and done.sealed.sealed_at is not None:
            lag: timedelta = done.sealed.sealed_at - done.oldest
            self._telemetry.sealing_lag.record(max(0.0, lag.total_seconds()))

    async def _rest(self, interval_seconds: float) -> None:
        if interval_seconds > 0:
            with self._listener.paused(LOG):
                await set_within(self._stopping, interval_seconds)
        sweep = (
            self._pace.sweep_seconds if self._listener.is_up else _SWEEP_SECONDS_WITHOUT_LISTENER
        )
        await set_within(self._woken, sweep)
