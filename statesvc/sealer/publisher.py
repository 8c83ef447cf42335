"""Publishing checkpoints to a store outside the database: the newest, at most one an interval, without holding up the sealer."""

import asyncio
from collections.abc import Callable
from typing import Final

import psycopg
import structlog

from statesvc.background.waiting import set_within
from statesvc.database.pool import Connections
from statesvc.database.sql_errors import failure
from statesvc.log.checkpoints import latest_head
from statesvc.sealer.checkpoint_store import CheckpointStore, CheckpointStoreError, ContradictedError
from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.names import Attribute

_STANDBY_SECONDS: Final = 1.0
_ANSWER_SECONDS: Final = 30.0
_RETRY_SECONDS: Final = 5.0
_RETRY_SECONDS_MAX: Final = 300.0

_log = structlog.get_logger()


class Publisher:
    """Works until `stop`. `leads` says whether this process is the one that signs; `sealed` is set whenever there is a new head.

    `refusal` says that another history lies in the store, until a human has checked.
    """

    def __init__(
        self,
        pool: Connections,
        store: CheckpointStore,
        *,
        interval_seconds: float,
        leads: Callable[[], bool],
        sealed: asyncio.Event,
        telemetry: Telemetry,
    ) -> None:
        self._pool = pool
        self._store = store
        self._interval_seconds = interval_seconds
        self._leads = leads
        self._sealed = sealed
        self._telemetry = telemetry
        self._stopping = asyncio.Event()
        self._published = -1
        self._failed = 0
        self.refusal: str | None = None

    def stop(self) -> None:
        """Ends `run`. Idempotent, safe before `run`."""
        self._stopping.set()
        self._sealed.set()

    async def run(self) -> None:
        """Goes on whatever becomes of the store."""
        while not self._stopping.is_set():
            if not self._leads():
                await set_within(self._stopping, _STANDBY_SECONDS)
                continue
            self._sealed.clear()
            if await self._publish():
                await self._sealed.wait()
                await set_within(self._stopping, self._interval_seconds)
            else:
                await set_within(self._stopping, min(_RETRY_SECONDS * 2 ** min(self._failed - 1, 6), _RETRY_SECONDS_MAX))

    async def _publish(self) -> bool:
        """Keeps the newest head. False: not yet."""
        try:
            async with self._pool.connection() as connection:
                head = await latest_head(connection)
            if head is not None and head.tree_size > self._published:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await self._store.keep(head.tree_size, head.note)
                self._published = head.tree_size
                self._count("published")
        except ContradictedError as error:
            self._fail("contradicted")
            if self.refusal != str(error):
                _log.error("checkpoint_contradicted", why=str(error))
            self.refusal = str(error)
            return False
        except (CheckpointStoreError, TimeoutError, psycopg.Error, OSError) as error:
            self._fail("failed")
            why = failure(error).value if isinstance(error, psycopg.Error) else str(error) or type(error).__name__
            _log.warning("checkpoint_publication_failed", why=why, attempt=self._failed)
            return False
        self._failed, self.refusal = 0, None
        return True

    def _fail(self, outcome: str) -> None:
        self._failed += 1
        self._count(outcome)

    def _count(self, outcome: str) -> None:
        self._telemetry.checkpoint_publications.add(1, {Attribute.OUTCOME: outcome})
