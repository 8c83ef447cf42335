"""Room for bodies: in their order, in two lanes, given back whatever happens."""

import asyncio

import pytest

from statesvc.ingress.body_memory import MemoryBound, NoRoomError, ReservedMemory


async def settle() -> None:
    """Let every task that can run do so."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_bodies_get_their_room_in_the_order_in_which_they_came() -> None:
    memory = MemoryBound(100, wait_seconds=10)
    assert memory.take(70, is_large=True)
    order: list[int] = []

    async def wait(place: int, count: int) -> None:
        await memory.admit(count, is_large=True)
        order.append(place)

    tasks = [asyncio.create_task(wait(place, count)) for place, count in enumerate((60, 5, 5))]
    await settle()
    assert order == [], "a small one behind a great one waits too, or that would wait for ever"
    assert not memory.take(1, is_large=True)
    memory.give_back(70, is_large=True)
    await settle()
    assert (order, memory.bytes_taken) == ([0, 1, 2], 70)
    await asyncio.gather(*tasks)


async def test_each_lane_leaves_room_for_the_other() -> None:
    memory = MemoryBound(100, wait_seconds=10)
    assert memory.take(75, is_large=True)
    waiting = asyncio.create_task(memory.admit(10, is_large=True))
    await settle()
    assert memory.bodies_waiting == 1
    assert memory.take(20), "small bodies do not wait for large ones"
    memory.give_back(75, is_large=True)
    await waiting
    memory.give_back(10, is_large=True)
    memory.give_back(20)
    assert memory.take(75)
    assert not memory.take(1)
    assert memory.take(20, is_large=True)


async def test_one_body_alone_may_take_more_than_its_lane() -> None:
    memory = MemoryBound(100)
    assert memory.take(100, is_large=True)
    memory.give_back(100, is_large=True)
    with pytest.raises(NoRoomError):
        await memory.admit(101)


async def test_who_waits_too_long_or_leaves_makes_room_for_the_next() -> None:
    memory = MemoryBound(100, wait_seconds=0.05)
    held = ReservedMemory(memory)
    assert held.take(60)
    with pytest.raises(NoRoomError):
        await memory.admit(60)
    assert (memory.bodies_waiting, memory.bytes_taken) == (0, 60)
    memory = MemoryBound(100, wait_seconds=10)
    held = ReservedMemory(memory)
    assert held.take(60)
    first, second = [asyncio.create_task(memory.admit(count)) for count in (70, 10)]
    await settle()
    first.cancel()
    await asyncio.wait([first])
    await second
    held.release()
    assert memory.bytes_taken == 10


async def test_a_turn_that_comes_as_it_is_given_up_is_given_back() -> None:
    memory = MemoryBound(100, wait_seconds=10)
    assert memory.take(70)
    waiting = asyncio.create_task(memory.admit(60))
    await settle()
    memory.give_back(70)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert memory.bytes_taken == 0


async def test_what_is_held_is_released_once() -> None:
    memory = MemoryBound(100)
    held = ReservedMemory(memory, is_large=True)
    await held.grow(40)
    held.shrink_to(30)
    assert memory.bytes_taken == 30
    held.release()
    held.release()
    assert memory.bytes_taken == 0
