import asyncio
from collections.abc import Sequence
from functools import partial

import pytest

from statesvc.roles.shutdown import Component, ShutdownTimes, StopSignals, run_until_stopped
from tests.world.waiting import until


class Steady:
    def __init__(self, name: str, order: list[str], *, deaf: bool = False) -> None:
        self.part = Component(name=name, run=self._run, stop=self._stop)
        self._name = name
        self._order = order
        self._deaf = deaf
        self._stopping = asyncio.Event()

    async def _run(self) -> None:
        try:
            await self._stopping.wait()
            if self._deaf:
                await asyncio.Event().wait()
        finally:
            self._order.append(f"{self._name} ended")

    def _stop(self) -> None:
        self._order.append(f"{self._name} asked")
        self._stopping.set()


@pytest.fixture
def order() -> list[str]:
    """Return what parts and the drain write down."""
    return []


async def run(
    order: list[str],
    *parts: Component,
    asks: int = 0,
    helpers: Sequence[asyncio.Task[None]] = (),
    grace_seconds: float = 0.3,
    drain_seconds: float = 0.0,
) -> int:
    """Run parts that a signal asks to stop so many times before they begin."""
    signals = StopSignals()
    for _ in range(asks):
        signals.ask("sigterm")
    times = ShutdownTimes(grace_seconds=grace_seconds, drain_seconds=drain_seconds)
    running = run_until_stopped(
        parts,
        helpers=helpers,
        signals=signals,
        drain=lambda: order.append("drained"),
        times=times,
    )
    # a minute's grace or drain that is not cut short fails
    return await asyncio.wait_for(running, 5)


async def test_readiness_fails_before_any_part_is_asked_to_stop(order: list[str]) -> None:
    assert await run(order, Steady("worker", order).part, asks=1) == 0
    assert order == ["drained", "worker asked", "worker ended"]


@pytest.mark.parametrize("death", [ValueError("gone"), None], ids=["raises", "returns"])
async def test_a_part_that_ends_by_itself_stops_the_process(
    order: list[str], death: Exception | None
) -> None:
    dying = Component(name="dying", run=partial(die, death), stop=lambda: None)
    # a process that lost a part does not serve on
    assert await run(order, dying, Steady("worker", order).part, drain_seconds=60) == 1
    assert order[-1] == "worker ended"


async def die(death: Exception | None) -> None:
    if death is not None:
        raise death


async def test_a_helper_that_dies_stops_the_process_too(order: list[str]) -> None:
    helper = asyncio.create_task(die(OSError()), name="listener")
    assert await run(order, Steady("worker", order).part, helpers=[helper]) == 1
    assert order[-1] == "worker ended"


async def test_a_part_that_does_not_stop_is_cancelled_after_the_grace(order: list[str]) -> None:
    await run(order, Steady("worker", order, deaf=True).part, asks=1)
    assert order == ["drained", "worker asked", "worker ended"]


async def test_a_second_signal_cuts_the_grace_short(order: list[str]) -> None:
    part = Steady("worker", order, deaf=True).part
    assert await run(order, part, asks=2, grace_seconds=60) == 1


async def test_parts_work_on_while_load_balancers_notice(order: list[str]) -> None:
    running = asyncio.create_task(run(order, Steady("http", order).part, asks=1, drain_seconds=0.2))
    await until(lambda: order)
    assert order == ["drained"]
    assert await running == 0
    assert order == ["drained", "http asked", "http ended"]


async def test_a_second_signal_cuts_the_waiting_for_load_balancers_short(order: list[str]) -> None:
    assert await run(order, Steady("http", order).part, asks=2, drain_seconds=60) == 1
    assert order == ["drained", "http asked", "http ended"]
