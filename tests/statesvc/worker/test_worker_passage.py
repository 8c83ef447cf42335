"""Who goes first in one event loop."""

import asyncio

from statesvc.append.passage import LONGEST_SECONDS, Passage


class Clock:
    """Time that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_long_batch_waits_while_another_goes_ahead() -> None:
    passage, told = Passage(), list[str]()

    async def long() -> None:
        await passage.give_way()
        told.append("long")

    with passage.ahead():
        task = asyncio.create_task(long())
        for _ in range(5):
            await asyncio.sleep(0)
        told.append("ahead")
    await task
    assert told == ["ahead", "long"]


async def test_it_waits_for_no_more_than_its_bound() -> None:
    clock = Clock()
    passage = Passage(clock)
    with passage.ahead():
        clock.now = LONGEST_SECONDS
        await passage.give_way()


async def test_whoever_always_wants_to_go_ahead_does_so_a_quarter_of_the_time() -> None:
    clock = Clock()
    passage = Passage(clock)
    with passage.ahead():
        clock.now = 0.02
    clock.now = 0.021
    with passage.ahead():
        await passage.give_way()
        clock.now = 0.079
    clock.now = 0.081
    with passage.ahead():
        task = asyncio.create_task(passage.give_way())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not task.done()
    await task
