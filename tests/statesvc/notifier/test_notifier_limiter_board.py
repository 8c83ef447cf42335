"""Limiter board: what it shows, and that it costs nothing while nothing is sent."""

from typing import Any

import pytest

from statesvc.database.wakeups.listener import Listener
from statesvc.delivery.limiter.permits import FORGOTTEN_AFTER_SECONDS, Permits
from statesvc.delivery.limiter.signal import Signal
from statesvc.delivery.limiter.subscription_limiter import AttemptEnd
from statesvc.delivery.targets import Targets
from statesvc.notifier import limiter_board
from statesvc.notifier.context import DatabaseClock, NotifierContext
from statesvc.notifier.limiter_board import LimiterBoard
from statesvc.subscriptions.recorded_attempts import LimiterSummary, read_limiter
from statesvc.telemetry.metrics import Telemetry
from tests.world.waiting import until


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limiter_board, "PUBLISH_SECONDS", 0.05)


def board(world: Any, permits: Permits, *, worker: str = "notifier-1") -> LimiterBoard:
    around = NotifierContext(
        pool=world.pool,
        keyring=world.keyring,
        listener=Listener(world.database.service_dsn, []),
        telemetry=Telemetry(),
        targets=Targets(),
    )
    return LimiterBoard(around, permits, DatabaseClock(), worker=worker)


def attempted(
    permits: Permits,
    subscription_id: Any,
    now: float,
    *,
    signal: Signal = Signal.OK,
    count: int = 1,
) -> None:
    for _ in range(count):
        permit = permits.take(subscription_id, now, is_retry=False)
        assert permit is not None
        end = AttemptEnd(signal=signal, at=now + 0.2, latency_seconds=0.2)
        permits.give(subscription_id, permit, end)
        permits.settled(subscription_id, end)


@pytest.mark.usefixtures("often")
async def test_a_limiter_is_shown_while_it_works_and_withdrawn_when_its_notifier_stops(
    world: Any, receiver: Any
) -> None:
    subscription_id = await world.subscribe()
    await world.notify((await world.shipment())[0], 1)

    async def shown() -> bool:
        limiter = await read_limiter(world.connection, subscription_id)
        # it may be published first while the attempt still waits for its answer
        return limiter.notifiers == 1 and not limiter.in_flight

    async with world.notifier():
        await until(lambda: receiver.received)
        await until(shown)
        limiter = await read_limiter(world.connection, subscription_id)
        assert (limiter.limit, limiter.in_flight, limiter.breaker, limiter.next_allowed_at) == (
            4,
            0,
            "closed",
            None,
        )
        assert limiter.mean_latency_seconds is not None
    assert await read_limiter(world.connection, subscription_id) == LimiterSummary(
        limit=0,
        in_flight=0,
        mean_latency_seconds=None,
        breaker="closed",
        next_allowed_at=None,
        notifiers=0,
    )


async def test_several_notifiers_are_summed_up_and_the_worst_breaker_shows(world: Any) -> None:
    subscription_id = await world.subscribe()
    now = DatabaseClock().now()
    well, down = Permits(256), Permits(256)
    attempted(well, subscription_id, now)
    attempted(down, subscription_id, now, signal=Signal.OVERLOADED, count=10)
    await board(world, well, worker="one").publish()
    await board(world, down, worker="two").publish()
    limiter = await read_limiter(world.connection, subscription_id)
    assert (limiter.limit, limiter.breaker, limiter.next_allowed_at, limiter.notifiers) == (
        5,
        "open",
        None,
        2,
    )
    await board(world, down, worker="one").publish()
    limiter = await read_limiter(world.connection, subscription_id)
    assert limiter.next_allowed_at is not None, "every notifier waits"


async def test_nothing_is_written_while_nothing_changes_and_the_forgotten_is_taken_back(
    world: Any,
) -> None:
    subscription_id = await world.subscribe()
    permits, mine = Permits(256), None
    mine = board(world, permits)
    attempted(permits, subscription_id, DatabaseClock().now())

    async def written() -> Any:
        return await world.rows("SELECT xmin::text, concurrency FROM statesvc.limiter_state")

    await mine.publish()
    first = await written()
    await mine.publish()
    assert await written() == first
    assert permits.forget_idle(DatabaseClock().now() + 1) == []
    attempted(permits, subscription_id, DatabaseClock().now() - FORGOTTEN_AFTER_SECONDS - 1)
    await mine.publish()
    assert await written() == []


async def test_the_metrics_count_subscriptions_by_breaker_and_permits_by_use(world: Any) -> None:
    permits = Permits(256)
    mine = board(world, permits)
    mine.observe()
    attempted(permits, await world.subscribe(), 0)
    attempted(permits, await world.subscribe(), 0, signal=Signal.OVERLOADED, count=10)
    text = mine._context.telemetry.exposition().decode()  # noqa: SLF001 - what a scrape sees
    assert 'statesvc_limiter_subscriptions{state="closed"} 1.0' in text
    assert 'statesvc_limiter_subscriptions{state="open"} 1.0' in text
    assert 'statesvc_limiter_permits{state="allowed"} 5.0' in text
