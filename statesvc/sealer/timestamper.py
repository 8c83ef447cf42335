"""Time stamps of heads by an authority (RFC 3161): at most one an interval, and at each new key.

It works beside the sealer and never delays it. A stamp is accepted only if it is for this head,
answers this request, and is signed by the configured authority; otherwise it is requested again
later, and the log gives the reason.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import aiohttp
import structlog

from events.merkle.checkpoint import signing_key_ids
from statesvc.database.pool import Connections
from statesvc.log.timestamp import TOKEN_BYTES_MAX, StampError, Trust, check_stamp, inquire
from statesvc.log.timestamp_store import StampStatus, stamp_status, store_stamp
from statesvc.sealer.head_follower import HeadFollower
from statesvc.telemetry.metric import Attribute
from statesvc.telemetry.metrics import Telemetry

_ANSWER_SECONDS: Final = 15.0
# Pause between checks for new signing keys.
_CHECK_SECONDS: Final = 60.0
_RETRY_SECONDS: Final = 30.0
_RETRY_SECONDS_MAX: Final = 3600.0

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """Time stamp authority.

    `interval_seconds`: at least this long between stamps, while the same keys sign.
    """

    url: str
    trust: Trust
    interval_seconds: float


class Stamper(HeadFollower):
    def __init__(
        self,
        pool: Connections,
        authority: Authority,
        *,
        leads: Callable[[], bool],
        sealed: asyncio.Event,
        telemetry: Telemetry,
    ) -> None:
        super().__init__(
            "timestamper",
            pool,
            leads=leads,
            sealed=sealed,
            telemetry=telemetry,
            every_seconds=0.0,
            retry_seconds=min(_RETRY_SECONDS, authority.interval_seconds),
            retry_seconds_max=min(_RETRY_SECONDS_MAX, authority.interval_seconds),
        )
        self._authority = authority

    async def _follow(self) -> float:
        try:
            found, pause = await self._stamp_if_due()
        except Exception:
            self._telemetry.checkpoint_stamps.add(1, {Attribute.OUTCOME: "failed"})
            raise
        if pause is not None:
            return pause
        # all there is has its stamp
        await self._sealed.wait()
        return 0.0 if found is None else min(_CHECK_SECONDS, self._authority.interval_seconds)

    async def _stamp_if_due(self) -> tuple[StampStatus | None, float | None]:
        """Return the status, and the seconds until a stamp is due.

        None: the newest head has a stamp, or there is no head.
        """
        async with self._pool.connection() as connection:
            found = await stamp_status(connection)
        if found is None or found.size == found.stamped_size:
            return found, None
        if not self._is_due(found):
            return found, min(
                _CHECK_SECONDS,
                max(0.0, self._authority.interval_seconds - (found.age_seconds or 0.0)),
            )
        async with asyncio.timeout(_ANSWER_SECONDS), aiohttp.ClientSession() as session:
            await self._stamp(session, found)
        self._telemetry.checkpoint_stamps.add(1, {Attribute.OUTCOME: "stamped"})
        return found, None

    def _is_due(self, found: StampStatus) -> bool:
        if found.stamped_size is None or found.age_seconds is None:
            return True
        if found.age_seconds >= self._authority.interval_seconds:
            return True
        return found.stamped_note is None or signing_key_ids(found.stamped_note) != signing_key_ids(
            found.note
        )

    async def _stamp(self, session: aiohttp.ClientSession, found: StampStatus) -> None:
        inquiry = inquire(found.note)
        headers = {
            "Content-Type": "application/timestamp-query",
            "Accept": "application/timestamp-reply",
        }
        async with session.post(
            # the authority is configured: an answer from elsewhere is not to be believed
            self._authority.url,
            data=inquiry.request,
            headers=headers,
            allow_redirects=False,
        ) as answer:
            if answer.status != 200:
                raise StampError(f"the authority answered {answer.status}")
            # one byte more than allowed shows that there is more, without reading it
            token = await answer.content.read(TOKEN_BYTES_MAX + 1)
            while len(token) <= TOKEN_BYTES_MAX and (
                more := await answer.content.read(TOKEN_BYTES_MAX + 1)
            ):
                token += more
        # before it is stored: stamps are never removed
        stamp = check_stamp(token, found.note, self._authority.trust, nonce=inquiry.nonce)
        async with self._pool.connection() as connection:
            await store_stamp(connection, found.size, stamp, token)
        _log.info("checkpoint_stamped", count=found.size)
