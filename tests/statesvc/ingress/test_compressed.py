"""Compressed and large bodies: unpacked within a bound of memory."""

import asyncio
import gzip
import hmac
import time
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from events.crypto.keyring import body_context
from events.crypto.sealing import unsalted
from statesvc.ingress.body_memory import MemoryBound, NoRoomError, ReservedMemory
from statesvc.ingress.request_body import decompressed

BODY = b'{"scan": "\xff is kept byte for byte"}\n'
GZIP = {"credential": "new", "Content-Encoding": "gzip"}
BOUND = 100_000
"""Bound of the carrier `acme`."""


async def test_a_compressed_body_is_stored_as_it_was_and_is_the_same_message_as_an_uncompressed_one(
    serve: Any,
) -> None:
    site = await serve()
    status, first, _ = await site.post(gzip.compress(BODY), headers=GZIP)
    assert status == 200
    for headers, body in (
        ({**GZIP, "Content-Encoding": "X-GZip"}, gzip.compress(BODY, 1)),
        ({"credential": "new"}, BODY),
        ({"credential": "new", "Content-Encoding": "identity"}, BODY),
    ):
        assert (await site.post(body, headers=headers))[1] == {
            "message_id": first["message_id"],
            "duplicate": True,
        }
    ((message_id, sealed_key, body_bytes),) = await site.rows(
        "SELECT message_id, sealed_key, body_bytes FROM statesvc.inbox"
    )
    ((sealed,),) = await site.rows("SELECT sealed FROM statesvc.body")
    context = body_context(message_id)
    assert unsalted(site.keyring.inbox.unwrap(sealed_key, context).open(sealed, context)) == BODY
    assert body_bytes == len(BODY)


@pytest.mark.parametrize(
    "signs", [lambda _sent: BODY, lambda sent: sent], ids=["before it compresses", "what it sends"]
)
async def test_a_signature_may_be_over_either_form(serve: Any, signs: Any) -> None:
    site = await serve()
    sent = gzip.compress(BODY)
    signature = hmac.new(b"s", signs(sent), "sha256").hexdigest()
    assert (await site.post(sent, "signed", {"X-Sign": signature, "Content-Encoding": "gzip"}))[
        0
    ] == 202
    assert (
        await site.post(
            gzip.compress(BODY + b" "), "signed", {"X-Sign": signature, "Content-Encoding": "gzip"}
        )
    )[0] == 401
    # what was signed as gzip says nothing of a body that is one
    assert (
        await site.post(gzip.compress(sent), "signed", {"X-Sign": "00", "Content-Encoding": "gzip"})
    )[0] == 401
    assert len(await site.rows("SELECT FROM statesvc.inbox")) == 1


async def test_another_coding_is_refused_with_those_that_are_taken(serve: Any) -> None:
    site = await serve()
    for coding in ("br", "deflate", "zstd", "gzip, gzip", "compress", "gzip;q=1"):
        status, problem, headers = await site.post(
            gzip.compress(BODY), headers={**GZIP, "Content-Encoding": coding}
        )
        assert (status, problem["code"], headers["Accept-Encoding"]) == (
            415,
            "unsupported_content_encoding",
            "gzip, identity",
        ), coding


async def test_what_is_no_gzip_is_malformed(serve: Any) -> None:
    site = await serve()
    for body in (
        BODY,
        zlib.compress(BODY),
        gzip.compress(BODY)[:-1],
        gzip.compress(BODY)[:12],
        gzip.compress(BODY) + b"more",
        gzip.compress(BODY)[:-8] + bytes(8),
        gzip.compress(b"") * 1_000,
    ):
        status, problem, _ = await site.post(body, headers=GZIP)
        assert (status, problem["code"]) == (400, "bad_request"), body
        assert await site.rows("SELECT FROM statesvc.inbox") == [], body


async def test_a_bomb_is_too_large_and_leaves_its_memory(serve: Any) -> None:
    site = await serve(memory_bytes_max=3 * BOUND)
    bomb = gzip.compress(bytes(64 * 1024 * 1024))
    assert len(bomb) < BOUND

    async def chunks() -> AsyncIterator[bytes]:
        yield bomb

    for sent in (bomb, chunks(), bomb, chunks(), bomb):
        status, problem, _ = await site.post(sent, headers=GZIP)
        assert (status, problem["code"]) == (413, "too_large")
    assert (await site.post(gzip.compress(bytes(BOUND)), headers=GZIP))[0] == 200, (
        "as large as it may be"
    )
    assert (await site.post(gzip.compress(bytes(BOUND + 1)), headers=GZIP))[0] == 413


def test_a_bomb_is_not_unpacked() -> None:
    bombs = [gzip.compress(bytes(256 * 1024 * 1024)), gzip.compress(bytes(60_000)) * 60]
    for bomb in bombs:
        tracemalloc.start()
        started = time.process_time()
        assert decompressed(bomb, bytes_max=BOUND) is None
        seconds, (_, peak) = time.process_time() - started, tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 10 * BOUND
        assert seconds < 0.5


def test_parts_are_joined_and_nothing_stays_nothing() -> None:
    assert (
        decompressed(gzip.compress(b"one ") + gzip.compress(b"two"), bytes_max=BOUND) == b"one two"
    )
    assert decompressed(gzip.compress(b""), bytes_max=BOUND) == b""
    assert decompressed(b"", bytes_max=BOUND) == b""


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
    assert not waiting.done()
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
    assert memory.bytes_taken == 60
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
