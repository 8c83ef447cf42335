"""A process stands back while it has much to do, and only then."""

import os
from collections.abc import Iterator

import pytest

from statesvc.background.busy_priority import BUSY_PER_SECOND, BusyPriority, may_return


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def niceness() -> Iterator[int]:
    if not may_return():
        pytest.skip("this system lets no process take its niceness back")
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, 0)
    yield 10
    os.setpriority(os.PRIO_PROCESS, 0, before)


def nice() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)


def test_at_the_load_of_a_day_it_stands_back_behind_nobody(niceness: int) -> None:
    clock = Clock()
    priority = BusyPriority(niceness, clock=clock)
    for _ in range(1000):
        clock.now += 0.01
        priority.claimed(3, has_backlog=False)
    assert (priority.stands_back, nice()) == (False, 0)


def test_behind_a_backlog_it_stands_back_until_it_is_calm_again(niceness: int) -> None:
    clock = Clock()
    priority = BusyPriority(niceness, clock=clock)
    priority.claimed(64, has_backlog=True)
    assert (priority.stands_back, nice()) == (True, niceness)
    clock.now += 1.9
    priority.claimed(1, has_backlog=False)
    assert priority.stands_back
    clock.now += 0.2
    priority.claimed(1, has_backlog=False)
    assert (priority.stands_back, nice()) == (False, 0)


def test_many_small_claims_are_much_to_do_too(niceness: int) -> None:
    clock = Clock()
    priority = BusyPriority(niceness, clock=clock)
    for _ in range(BUSY_PER_SECOND // 6 + 1):
        clock.now += 0.005
        priority.claimed(6, has_backlog=False)
    assert priority.stands_back


def test_outside_of_up_a_process_is_as_nice_as_it_was_started(niceness: int) -> None:
    assert niceness
    priority = BusyPriority(0)
    priority.claimed(64, has_backlog=True)
    assert (priority.stands_back, nice()) == (False, 0)
