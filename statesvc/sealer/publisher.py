"""Publishing checkpoints to a store outside the database: the newest, at most one an interval,
without holding up the sealer.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from statesvc.database.pool import Connections
from statesvc.log.checkpoint_store import CheckpointStore, ContradictedError
from statesvc.log.checkpoints import latest_head
from statesvc.sealer.head_follower import HeadFollower
from statesvc.telemetry.metric import Attribute
from statesvc.telemetry.metrics import Telemetry

_ANSWER_SECONDS: Final = 30.0
_RETRY_SECONDS: Final = 5.0
_RETRY_SECONDS_MAX: Final = 300.0


class Publisher(HeadFollower):
    """`refusal` is set while the store holds another history, until an operator has checked."""

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
        super().__init__(
            "publisher",
            pool,
            leads=leads,
            sealed=sealed,
            telemetry=telemetry,
            every_seconds=interval_seconds,
            retry_seconds=_RETRY_SECONDS,
            retry_seconds_max=_RETRY_SECONDS_MAX,
        )
        self._store = store
        self._published: str | None = None
        self.refusal: str | None = None

    async def _follow(self) -> None:
        try:
            await self._publish()
        except ContradictedError as error:
            self._count("contradicted")
            self.refusal = str(error)
            raise
        except Exception:
            self._count("failed")
            raise
        self.refusal = None
        # heads between two are left out: each covers all before it
        await self._sealed.wait()

    async def _publish(self) -> None:
        """Store the newest head. Raises ContradictedError, CheckpointStoreError, TimeoutError."""
        async with self._pool.connection() as connection:
            head = await latest_head(connection)
        if head is not None and head.note != self._published:
            async with asyncio.timeout(_ANSWER_SECONDS):
                # once a process, and before the first write: a store that overwrites proves nothing
                if self._published is None:
                    await self._store.require_no_overwriting()
                await self._store.keep(head.note)
            # after the store answered: a note that may not have arrived is put again
            self._published = head.note
            self._count("published")

    def _count(self, outcome: str) -> None:
        self._telemetry.checkpoint_publications.add(1, {Attribute.OUTCOME: outcome})
