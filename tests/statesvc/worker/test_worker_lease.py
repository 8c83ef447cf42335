"""A batch keeps its lease while it works, within a bound, and stops when it has lost it."""

import asyncio

import pytest

from statesvc.worker.lease import RESCUE_SECONDS, LeaseLostError, RescueShare, under_lease

LEASE_SECONDS = 0.04


class Lease:
    def __init__(self, *answers: int | Exception) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def extend(self) -> int:
        self.asked += 1
        answer = self.answers.pop(0) if self.answers else 1
        if isinstance(answer, Exception):
            raise answer
        return answer


async def _worth(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


async def test_quick_work_asks_for_nothing() -> None:
    lease = Lease()
    assert await under_lease(_worth(0), extend=lease.extend, lease_seconds=10) == "done"
    assert lease.asked == 0


async def test_slow_work_extends_its_lease_every_half_of_it_also_after_an_extension_that_failed() -> (
    None
):
    lease = Lease(1, OSError(), 1)
    assert (
        await under_lease(
            _worth(LEASE_SECONDS * 2.2), extend=lease.extend, lease_seconds=LEASE_SECONDS
        )
        == "done"
    )
    assert lease.asked >= 3


async def test_work_that_hangs_keeps_its_lease_for_a_bounded_time_only() -> None:
    lease = Lease()
    assert (
        await under_lease(
            _worth(LEASE_SECONDS * 4),
            extend=lease.extend,
            lease_seconds=LEASE_SECONDS,
            extensions_max=2,
        )
        == "done"
    )
    assert lease.asked == 2


async def test_a_lost_lease_stops_the_work() -> None:
    lease = Lease(1, 0)
    stopped = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            stopped.set()

    with pytest.raises(LeaseLostError):
        await under_lease(work(), extend=lease.extend, lease_seconds=LEASE_SECONDS)
    assert stopped.is_set()


async def test_a_cancelled_batch_takes_its_work_along() -> None:
    stopped = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            stopped.set()

    task = asyncio.create_task(under_lease(work(), extend=Lease().extend, lease_seconds=10))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()


def test_take_overs_and_lanes_share_the_time() -> None:
    rescues = RescueShare()
    now = 100.0
    rescued = 0.0
    while rescues.rescue_first(now):
        rescues.rescued(began=now, ended=now + 0.01)
        now, rescued = now + 0.01, rescued + 0.01
    assert rescued == pytest.approx(RESCUE_SECONDS, abs=0.011)
    assert not rescues.rescue_first(now + rescued - 0.02)
    assert rescues.rescue_first(now + rescued + 0.02)


def test_take_overs_apart_from_each_other_owe_the_lanes_nothing() -> None:
    rescues = RescueShare()
    for second in range(100):
        assert rescues.rescue_first(second)
        rescues.rescued(began=second, ended=second + 0.01)
        rescues.lanes_served()
