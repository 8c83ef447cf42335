"""Garbage is looked for when little is in use."""

import gc
import weakref

from statesvc.worker.garbage import EVERY_SECONDS, LATEST_SECONDS, Garbage


class Cycle:
    def __init__(self) -> None:
        self.own = self


def test_what_refers_to_itself_is_collected_now_and_then() -> None:
    with Garbage(100.0) as garbage:
        forgotten = weakref.ref(Cycle())
        assert not garbage.may_collect(100.0 + EVERY_SECONDS - 1, busy=False)
        assert forgotten() is not None
        assert garbage.may_collect(100.0 + EVERY_SECONDS, busy=False)
        assert forgotten() is None
        assert not garbage.may_collect(101.0 + EVERY_SECONDS, busy=False)


def test_it_waits_for_a_batch_but_not_for_ever() -> None:
    with Garbage(100.0) as garbage:
        assert not garbage.may_collect(100.0 + LATEST_SECONDS - 1, busy=True)
        assert garbage.may_collect(100.0 + LATEST_SECONDS, busy=True)


def test_the_interpreter_is_left_as_it_was() -> None:
    before = gc.get_threshold()
    with Garbage(0.0):
        assert gc.isenabled()
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before
