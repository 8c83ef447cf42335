"""Whose work a wake-up announces."""

import asyncio
from typing import Any

from statesvc.database.wakeups.channels import INBOX
from statesvc.database.wakeups.hint import ANYBODY, read, together, written
from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.waker import Waker


def test_what_is_written_is_read() -> None:
    for named in (ANYBODY, frozenset({"ups"}), frozenset({"ups", "17track"})):
        assert read(written(named)) == named


def test_more_names_than_a_payload_should_hold_are_anybody() -> None:
    assert written(frozenset(f"c{n}" for n in range(33))) == ""


def test_a_wake_up_for_anybody_swallows_the_names() -> None:
    assert together(frozenset({"a"}), frozenset({"b"})) == frozenset({"a", "b"})
    assert together(frozenset({"a"}), ANYBODY) is together(ANYBODY, frozenset({"a"})) is ANYBODY


async def test_the_carriers_of_one_interval_arrive_together_and_are_taken_once(database: Any) -> None:
    listener, waker = Listener(database.service_dsn, [INBOX]), Waker(database.service_dsn)
    event = listener.event(INBOX)
    await listener.start()
    async with asyncio.timeout(10):
        await event.wait()
        assert listener.heard(INBOX) is ANYBODY, "anything may have come while nobody listened"
        event.clear()
        waker.wake(INBOX, "ups")
        waker.wake(INBOX, "gls")
        await waker.start()
        await event.wait()
    assert listener.heard(INBOX) == frozenset({"gls", "ups"})
    assert listener.heard(INBOX) == frozenset()
    await waker.stop()
    await listener.stop()
