import asyncio

import pytest

from statesvc.roles.shutdown import Component, ShutdownTimes, StopSignals, run_until_stopped


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


async def run(
    parts: list[Component],
    signals: StopSignals,
    order: list[str],
    *,
    helpers: list[asyncio.Task[None]] | None = None,
    drain_seconds: float = 0.0,
    grace_seconds: float = 0.3,
) -> int:
    def drain() -> None:
        order.append("drained")

    times = ShutdownTimes(grace_seconds=grace_seconds, drain_seconds=drain_seconds)
    return await asyncio.wait_for(
        run_until_stopped(parts, helpers=helpers or [], signals=signals, drain=drain, times=times),
        5,
    )


async def test_readiness_fails_before_any_part_is_asked_to_stop() -> None:
    order: list[str] = []
    signals = StopSignals()
    signals.ask("sigterm")
    assert await run([Steady("worker", order).part], signals, order) == 0
    assert order == ["drained", "worker asked", "worker ended"]


@pytest.mark.parametrize("death", ["raises", "returns"])
async def test_a_part_that_ends_by_itself_stops_the_process(death: str) -> None:
    async def die() -> None:
        if death == "raises":
            raise ValueError("gone")

    order: list[str] = []
    dying = Component(name="dying", run=die, stop=lambda: None)
    assert await run([dying, Steady("worker", order).part], StopSignals(), order) == 1
    assert order[-1] == "worker ended"


async def test_a_helper_that_dies_stops_the_process_too() -> None:
    async def die() -> None:
        raise OSError

    order: list[str] = []
    helper = asyncio.create_task(die(), name="listener")
    assert await run([Steady("worker", order).part], StopSignals(), order, helpers=[helper]) == 1
    assert order[-1] == "worker ended"


async def test_a_part_that_does_not_stop_is_cancelled_after_the_grace() -> None:
    order: list[str] = []
    signals = StopSignals()
    signals.ask("sigterm")
    await run([Steady("worker", order, deaf=True).part], signals, order)
    assert order == ["drained", "worker asked", "worker ended"]


async def test_a_second_signal_cuts_the_grace_short() -> None:
    order: list[str] = []
    signals = StopSignals()
    signals.ask("sigint")
    signals.ask("sigint")
    # the whole is waited for 5 s: a minute's grace that is not cut short fails
    assert (
        await run([Steady("worker", order, deaf=True).part], signals, order, grace_seconds=60) == 1
    )


async def test_parts_work_on_while_load_balancers_notice() -> None:
    order: list[str] = []
    signals = StopSignals()
    signals.ask("sigterm")
    steady = Steady("http", order)
    running = asyncio.create_task(run([steady.part], signals, order, drain_seconds=0.2))
    async with asyncio.timeout(5):
        while not order:  # noqa: ASYNC110 - the task under test makes it so
            await asyncio.sleep(0)
    assert order == ["drained"]
    assert await running == 0
    assert order == ["drained", "http asked", "http ended"]


async def test_a_second_signal_cuts_the_waiting_for_load_balancers_short() -> None:
    order: list[str] = []
    signals = StopSignals()
    signals.ask("sigterm")
    signals.ask("sigterm")
    assert await run([Steady("http", order).part], signals, order, drain_seconds=60) == 1
    assert order == ["drained", "http asked", "http ended"]


async def test_a_process_that_lost_a_part_does_not_serve_on() -> None:
    async def die() -> None:
        raise ValueError("gone")

    order: list[str] = []
    dying = Component(name="dying", run=die, stop=lambda: None)
    assert (
        await run([dying, Steady("http", order).part], StopSignals(), order, drain_seconds=60) == 1
    )
