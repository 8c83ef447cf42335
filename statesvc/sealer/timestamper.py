"""Having heads stamped by a time stamping authority (RFC 3161): at most one an interval, and one as soon as other keys sign.

It works beside the sealer and never holds it up. A stamp is believed only if it is of the very head, answers the very request, and is
signed by the authority whose certificate was given; else it is asked for again later, and the log says why.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import aiohttp
import psycopg
import structlog

from events.checkpoint import signing_key_ids
from statesvc.background.waiting import set_within
from statesvc.database.pool import Connections
from statesvc.database.sql_errors import failure
from statesvc.log.timestamp import TOKEN_BYTES_MAX, StampError, Trust, check_stamp, inquire
from statesvc.log.timestamp_store import StampStatus, stamp_status, store_stamp
from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.names import Attribute

_ANSWER_SECONDS: Final = 15.0
_CHECK_SECONDS: Final = 60.0
"""From one check whether other keys sign to the next."""
_STANDBY_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 30.0
_RETRY_SECONDS_MAX: Final = 3600.0

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """Who stamps. `interval_seconds`: from one stamp to the next, at least, while the same keys sign."""

    url: str
    trust: Trust
    interval_seconds: float


class Stamper:
    """Works until `stop`. `leads` says whether this process is the one that signs; `sealed` is set whenever there is a new head."""

    def __init__(
        self, pool: Connections, authority: Authority, *, leads: Callable[[], bool], sealed: asyncio.Event, telemetry: Telemetry
    ) -> None:
        self._pool = pool
        self._authority = authority
        self._leads = leads
        self._sealed = sealed
        self._telemetry = telemetry
        self._stopping = asyncio.Event()
        self._failed = 0
        self._any = False

    def stop(self) -> None:
        """Ends `run`. Idempotent, safe before `run`."""
        self._stopping.set()
        self._sealed.set()

    async def run(self) -> None:
        """Goes on whatever the authority answers."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_ANSWER_SECONDS)) as session:
            while not self._stopping.is_set():
                if not self._leads():
                    await set_within(self._stopping, _STANDBY_SECONDS)
                    continue
                self._sealed.clear()
                seconds = await self._stamp_if_due(session)
                if seconds is None:
                    # all there is has its stamp
                    await self._sealed.wait()
                    seconds = min(_CHECK_SECONDS, self._authority.interval_seconds) if self._any else 0.0
                await set_within(self._stopping, seconds)

    async def _stamp_if_due(self, session: aiohttp.ClientSession) -> float | None:
        """Stamps the newest head if one is due. Answers when to check again; None: when there is a new head."""
        interval = self._authority.interval_seconds
        try:
            async with self._pool.connection() as connection:
                found = await stamp_status(connection)
            self._any = found is not None
            if found is None or found.size == found.stamped_size:
                return None
            if not self._is_due(found):
                return min(_CHECK_SECONDS, max(0.0, interval - (found.age_seconds or 0.0)))
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self._stamp(session, found)
        except (StampError, aiohttp.ClientError, TimeoutError, OSError, psycopg.Error) as error:
            self._failed += 1
            delay: float = min(_RETRY_SECONDS * 2 ** min(self._failed - 1, 7), _RETRY_SECONDS_MAX, interval)
            why = failure(error).value if isinstance(error, psycopg.Error) else str(error) or type(error).__name__
            _log.warning("checkpoint_stamp_failed", why=why, attempt=self._failed, delay_seconds=delay)
            self._telemetry.checkpoint_stamps.add(1, {Attribute.OUTCOME: "failed"})
            return delay
        self._failed = 0
        self._telemetry.checkpoint_stamps.add(1, {Attribute.OUTCOME: "stamped"})
        return None

    def _is_due(self, found: StampStatus) -> bool:
        if found.stamped_size is None or found.age_seconds is None:
            return True
        if found.age_seconds >= self._authority.interval_seconds:
            return True
        return found.stamped_note is None or signing_key_ids(found.stamped_note) != signing_key_ids(found.note)

    async def _stamp(self, session: aiohttp.ClientSession, found: StampStatus) -> None:
        inquiry = inquire(found.note)
        headers = {"Content-Type": "application/timestamp-query", "Accept": "application/timestamp-reply"}
        async with session.post(self._authority.url, data=inquiry.request, headers=headers, allow_redirects=False) as answer:
            if answer.status != 200:
                raise StampError(f"the authority answered {answer.status}")
            token = await answer.content.read(TOKEN_BYTES_MAX + 1)
            while len(token) <= TOKEN_BYTES_MAX and (more := await answer.content.read(TOKEN_BYTES_MAX + 1)):
                token += more
        stamp = check_stamp(token, found.note, self._authority.trust, nonce=inquiry.nonce)
        async with self._pool.connection() as connection:
            await store_stamp(connection, found.size, stamp, token)
        _log.info("checkpoint_stamped", count=found.size)
