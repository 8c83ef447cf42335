"""All streams of this process: admission, shedding, and waking them as the log grows."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import psycopg
import structlog
from aiohttp import hdrs, web

from statesvc.addons.stream.admission import CHECK_SECONDS, CLOSED_SECONDS, Admission, LoadShedder
from statesvc.addons.stream.follower import PING_SECONDS, Channel, Follower, StreamEnd
from statesvc.addons.stream.frame_pages import ENTRIES_MAX, Pages
from statesvc.addons.stream.frames import opening_frame, reset_frames
from statesvc.api.log_operations import lost_cursor
from statesvc.api.transition_operations import TransitionChoice
from statesvc.background.waiting import set_within
from statesvc.database.pool import Connections
from statesvc.database.wakeups.listener import Listener
from statesvc.http.keys.api_keys import Keys, caller_of
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem
from statesvc.log.cursor import LogCursor, LostCursorError
from statesvc.log.history import History
from statesvc.telemetry import gauges
from statesvc.telemetry.metrics import Telemetry, Values

EVENT_STREAM: Final = "text/event-stream"
_HEADERS: Final = {
    hdrs.CONTENT_TYPE: EVENT_STREAM,
    hdrs.CACHE_CONTROL: "no-store",
    "X-Accel-Buffering": "no",
}
_ANY_ORIGIN: Final = {hdrs.ACCESS_CONTROL_ALLOW_ORIGIN: "*"}
_RETRY_SECONDS: Final = (1.0, 5.0)
SWEEP_SECONDS: Final = 30.0
_SWEEP_SECONDS_WITHOUT_LISTENER: Final = 0.5

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    """Limits of the streams: how many, and how patient they are."""

    clients_max: int
    clients_per_key_max: int
    send_seconds: float
    ping_seconds: float = PING_SECONDS
    page_entries: int = ENTRIES_MAX
    check_seconds: float = CHECK_SECONDS
    """Time between two looks at whether streams must be shed."""
    closed_seconds: float = CLOSED_SECONDS


class Streams:
    """Runs along with the server.

    `woken` is set on each publication; this is its only consumer. `pressure`: whether another
    part of the process runs short of resources.
    """

    def __init__(
        self,
        pool: Connections,
        *,
        archive: History,
        keys: Keys,
        listener: Listener,
        woken: asyncio.Event,
        telemetry: Telemetry,
        limits: StreamLimits,
        pressure: Callable[[], bool] = lambda: False,
    ) -> None:
        self._keys = keys
        self._telemetry = telemetry
        self._limits = limits
        self._pressure = pressure
        self._pages = Pages(pool, archive, entries_max=limits.page_entries)
        self._listener = listener
        self._woken = woken
        self._admission = Admission(
            clients_max=limits.clients_max, clients_per_key_max=limits.clients_per_key_max
        )
        self._shedder = LoadShedder(closed_seconds=limits.closed_seconds)
        self._followers: set[Follower] = set()
        self._occupied = asyncio.Event()
        self._stopping = asyncio.Event()
        self._jitter = random.Random()  # noqa: S311 - spreads clients, guards nothing
        telemetry.observe(gauges.STREAM_CLIENTS, self._clients)

    async def run(self) -> None:
        """Wake the streams at each publication, and check the load, until `stop`."""
        watch = asyncio.create_task(self._watch(), name="stream-watch")
        try:
            while not self._stopping.is_set():
                # a wake-up can be lost while the listener reconnects: the sweep bounds the delay
                sweep = SWEEP_SECONDS if self._listener.is_up else _SWEEP_SECONDS_WITHOUT_LISTENER
                await set_within(self._woken, sweep)
                self._woken.clear()
                self._pages.renew()
                for follower in self._followers:
                    follower.wake()
        finally:
            watch.cancel()

    def stop(self) -> None:
        """End all streams at once and refuse new ones. Idempotent, safe before `run`."""
        self._stopping.set()
        self._woken.set()
        self._end_all(StreamEnd.STOPPING)

    async def serve(
        self,
        request: web.Request,
        *,
        selection: TransitionChoice,
        after: LogCursor | None,
        any_origin: bool = False,
    ) -> web.StreamResponse:
        """Serve a stream of the transitions after `after` (None: from now on).

        Raises the problems 410, 429 and 503. `any_origin`: pages of other origins may read
        it.
        """
        self._check_open()
        response = web.StreamResponse(headers=_HEADERS | (_ANY_ORIGIN if any_origin else {}))
        # a client that comes back should find another process, which it can't on the same
        # connection
        response.force_close()
        # before a slot is taken: a HEAD has no body to wait for
        if request.method == hdrs.METH_HEAD:
            return response
        channel = Channel(request, response, send_seconds=self._limits.send_seconds)
        with self._admission.slot(caller_of(request).key_id, lambda: channel.is_gone):
            try:
                end, seen = await self._pages.end(after)
            except LostCursorError as error:
                raise lost_cursor(error) from error
            is_of_another_log = seen is not None and (
                # beyond the end: the client's index was given by another log, or by one that was
                # cut off
                seen.epoch > end.epoch or seen.index >= max(end.tree_size, 1)
            )
            next_index = end.tree_size if seen is None or is_of_another_log else seen.index + 1
            follower = Follower(
                channel,
                pages=self._pages,
                selection=selection,
                next_index=next_index,
                epoch=end.epoch,
                count=self._telemetry.stream_transitions.add,
                may_go_on=lambda: self._may_go_on(request),
                ping_seconds=self._limits.ping_seconds,
            )
            retry_seconds, place = (
                self._jitter.uniform(*_RETRY_SECONDS),
                LogCursor(end.epoch, next_index - 1),
            )
            if after is not None and is_of_another_log:
                opening = reset_frames(
                    retry_seconds=retry_seconds, asked=after, tree_size=end.tree_size, place=place
                )
            else:
                opening = opening_frame(retry_seconds=retry_seconds, place=place)
            # it may have begun to stop while the log was asked
            self._check_open()
            # before the first byte: what is published from here on wakes it
            self._followers.add(follower)
            self._occupied.set()
            try:
                await response.prepare(request)
                ended = await follower.run(opening)
            finally:
                self._followers.discard(follower)
        self._telemetry.stream_ends.add(1, {"cause": ended.value})
        return response

    def _check_open(self) -> None:
        if self._stopping.is_set():
            raise Problem(Code.NOT_READY, "the process is stopping; come back elsewhere")
        if self._shedder.is_closed(asyncio.get_running_loop().time()):
            raise Problem(
                Code.OVERLOADED,
                "the process has no room for streams now",
                headers=self._admission.later(),
            )

    async def _may_go_on(self, request: web.Request) -> bool:
        try:
            caller = await self._keys.by_id(caller_of(request).key_id)
        except psycopg.Error:
            # the database cannot say; nothing can be read from it either
            return True
        return caller is not None and caller.has(Scope.READ)

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            # without streams there is nothing to shed, and no reason to wake four times a second
            await self._occupied.wait()
            checked_at = loop.time()
            await asyncio.sleep(self._limits.check_seconds)
            now = loop.time()
            if self._shedder.check(
                late_seconds=now - checked_at - self._limits.check_seconds,
                pressure=self._pressure(),
                now=now,
            ):
                _log.warning("streams_shed", count=len(self._followers))
                self._end_all(StreamEnd.SHED)
            if not self._followers:
                self._occupied.clear()

    def _end_all(self, why: StreamEnd) -> None:
        for follower in self._followers:
            follower.end(why)

    def _clients(self) -> Iterator[tuple[float, Values]]:
        count = Counter("behind" if follower.is_behind else "live" for follower in self._followers)
        for state in ("live", "behind"):
            yield count[state], {"state": state}
