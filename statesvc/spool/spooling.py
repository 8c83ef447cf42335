"""A spool as ingress uses it: keeps pushes that the database does not take, and drains them
later.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import structlog

from statesvc.bodies.sealed_message import SealedMessage
from statesvc.spool.drain import Drain, DrainContext
from statesvc.spool.drainer import ServerClock
from statesvc.spool.spool import Spool, SpooledMessage, SpoolRefusedError

# A stream takes up to 9 s to elect a leader; a late ACK is better than none.
_KEEP_SECONDS: Final = 10.0
_log = structlog.get_logger()


@dataclass(slots=True, kw_only=True)
class Spooling:
    """`kept` hears of each message that is kept."""

    spool: Spool
    clock: ServerClock = field(default_factory=ServerClock)
    kept: Callable[[], None] = lambda: None
    _drain: Drain | None = None
    _failure: str | None = None

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        task = None if self._drain is None else self._drain.task
        return [] if task is None else [task]

    def start(self, context: DrainContext) -> None:
        self._drain = Drain(self.spool, self.clock, context)
        self._drain.start()

    def wake(self) -> None:
        """Probe the database at once: its breaker has opened."""
        if self._drain is not None:
            self._drain.wake()

    async def keep(self, message: SealedMessage) -> UUID | None:
        """Keep a message; return the id under which it is durable, None where it is not known to
        be.
        """
        try:
            async with asyncio.timeout(_KEEP_SECONDS):
                message_id = await self.spool.keep(SpooledMessage(message, self.clock.now()))
        except (SpoolRefusedError, TimeoutError) as error:
            failure = str(error) or "it does not answer"
            if failure != self._failure:
                _log.warning("spool_refuses", why=failure)
            self._failure = failure
            return None
        self._failure = None
        self.kept()
        return message_id

    def refusal(self) -> str | None:
        """Return why no message is kept now; None: it takes them."""
        return self.spool.refusal()

    async def close(self) -> None:
        if self._drain is not None:
            await self._drain.close()
        await self.spool.close()
