"""Publishes the limiter's state for people: on change, every few seconds at most.

No decision reads it.
"""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import psycopg
import structlog

from statesvc.background.periodic import Periodic
from statesvc.database.queries import columns, queries
from statesvc.delivery.limiter.circuit_breaker import BreakerState
from statesvc.delivery.limiter.permits import Permits
from statesvc.delivery.limiter.subscription_limiter import LimiterState
from statesvc.notifier.context import DatabaseClock, NotifierContext
from statesvc.telemetry import gauges
from statesvc.telemetry.metrics import Values

PUBLISH_SECONDS: Final = 3.0
# State in use is written again after this, even if unchanged, so that readers can distinguish it
# from that of a dead notifier.
REFRESH_SECONDS: Final = 60.0

_SQL = queries("statesvc.notifier", "limiter_board")
_COLUMNS = (
    "subscription_ids",
    "concurrencies",
    "in_flights",
    "mean_latencies",
    "breakers",
    "open_untils",
)
_log = structlog.get_logger()


class LimiterBoard(Periodic):
    """Board of a notifier. It makes no query while no notification is sent."""

    def __init__(
        self, context: NotifierContext, permits: Permits, clock: DatabaseClock, *, worker: str
    ) -> None:
        super().__init__(
            "notifier limiter board",
            self._publish_within,
            first_seconds=PUBLISH_SECONDS,
            every_seconds=PUBLISH_SECONDS,
            retry_seconds=PUBLISH_SECONDS,
        )
        self._context = context
        self._permits = permits
        self._clock = clock
        self._worker = worker
        self._shown: dict[UUID, tuple[LimiterState, float]] = {}
        """States that were written, and when."""

    def observe(self) -> None:
        self._context.telemetry.observe(gauges.LIMITER_SUBSCRIPTIONS, self._by_breaker)
        self._context.telemetry.observe(gauges.LIMITER_PERMITS, self._permits_used)

    async def run(self) -> None:
        """Run through database errors, and withdraw its rows at the end."""
        await super().run()
        try:
            # a stop must not wait for a database that is away; rows of the dead are pruned by
            # others
            if self._shown:
                async with (
                    asyncio.timeout(PUBLISH_SECONDS),
                    self._context.pool.connection() as connection,
                ):
                    await connection.execute(_SQL["withdraw_all"], {"worker": self._worker})
        except (psycopg.Error, TimeoutError) as error:
            _log.warning("limiter_state_not_withdrawn", error=error)

    async def _publish_within(self) -> None:
        async with asyncio.timeout(PUBLISH_SECONDS):
            await self.publish()

    async def publish(self) -> None:
        """Write changed states, delete forgotten ones."""
        now = self._clock.now()
        # here, since nothing else runs through all subscriptions regularly: memory follows those in
        # use
        forgotten = self._permits.forget_idle(now)
        changed = {
            one: state
            for one, state in self._permits.states().items()
            if self._is_changed(one, state, now)
        }
        withdrawn = [one for one in forgotten if one in self._shown]
        if not changed and not withdrawn:
            return
        rows = [
            (
                one,
                state.limit,
                state.in_flight,
                state.mean_latency_seconds,
                state.breaker.value,
                None if state.open_until is None else datetime.fromtimestamp(state.open_until, UTC),
            )
            for one, state in changed.items()
        ]
        of: dict[str, Any] = {"worker": self._worker}
        async with self._context.pool.connection() as connection:
            if rows:
                await connection.execute(_SQL["publish"], {**of, **columns(rows, _COLUMNS)})
            if withdrawn:
                await connection.execute(_SQL["withdraw"], {**of, "subscription_ids": withdrawn})
        # after the write: where that failed, the next pass tries the same again
        for one in withdrawn:
            del self._shown[one]
        self._log_breakers(changed)
        self._shown |= {one: (state, now) for one, state in changed.items()}

    def _is_changed(self, subscription_id: UUID, state: LimiterState, now: float) -> bool:
        if subscription_id not in self._shown:
            return True
        shown, at = self._shown[subscription_id]
        return shown != state or (state.in_flight > 0 and now > at + REFRESH_SECONDS)

    def _log_breakers(self, changed: Mapping[UUID, LimiterState]) -> None:
        """Log a breaker that opened, or closed again; the probes between are not worth a line."""
        for one, state in changed.items():
            was_closed = (
                one not in self._shown or self._shown[one][0].breaker is BreakerState.CLOSED
            )
            if was_closed and state.breaker is not BreakerState.CLOSED:
                _log.warning("subscriber_breaker_opened", subscription_id=str(one))
            elif not was_closed and state.breaker is BreakerState.CLOSED:
                _log.info("subscriber_breaker_closed", subscription_id=str(one))

    def _by_breaker(self) -> Iterator[tuple[float, Values]]:
        states = [state.breaker for state in self._permits.states().values()]
        for state in BreakerState:
            yield states.count(state), {"state": state.value}

    def _permits_used(self) -> Iterator[tuple[float, Values]]:
        states = self._permits.states().values()
        yield sum(state.limit for state in states), {"state": "allowed"}
        yield sum(state.in_flight for state in states), {"state": "used"}
