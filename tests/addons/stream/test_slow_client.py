"""A client that does not read is cut off; nobody else waits for it, and it comes back to where it
was.
"""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from statesvc.addons.stream.streams import StreamLimits
from tests.addons.stream.conftest import Stage
from tests.addons.stream.event_source import parse

IMPATIENT = StreamLimits(clients_max=9, clients_per_key_max=9, send_seconds=0.5)
PARCELS = 1_000


@asynccontextmanager
async def idle_reader(stage: Stage, path: str = "/v1/stream") -> AsyncIterator[socket.socket]:
    """Ask for the stream, and read nothing; what fits into its small buffer is all that it
    takes.
    """
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(connection, ("127.0.0.1", stage.client.port))
        await loop.sock_sendall(
            connection,
            f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {stage.key}\r\n\r\n".encode(),
        )
        await stage.until_counted('statesvc_stream_clients{state="live"}', 1)
        yield connection


async def received(connection: socket.socket) -> list[int]:
    """Return the ids of all whole events that its buffers still hold; the opening
    event is none of them.
    """
    found = b""
    loop = asyncio.get_running_loop()
    try:
        while chunk := await loop.sock_recv(connection, 65536):
            found += chunk
    except ConnectionResetError:
        pass
    *blocks, _ = found.replace(b"\r\n", b"\n").split(b"\n\n")
    return [
        int(block.id.removeprefix("1."))
        for block in map(_parsed, blocks)
        if block.id is not None and block.name not in {None, "opened"}
    ]


def _parsed(block: bytes) -> Any:
    # the lines of the chunked encoding stand between the fields
    lines = [line for line in block.split(b"\n") if b": " in line and not line.startswith(b"HTTP")]
    return parse(
        b"\n".join(line for line in lines if line.split(b":")[0] in {b"id", b"event", b"data"})
        or b"x:"
    )


@pytest.mark.slow
async def test_a_client_that_does_not_read_is_cut_off_and_others_are_not_held_up(
    staged: Callable[..., Any],
) -> None:
    async with (
        staged(limits=IMPATIENT) as stage,
        idle_reader(stage) as slow,
        stage.source() as quick,
    ):
        await stage.move([f"1Z{place}" for place in range(PARCELS)])
        started = time.monotonic()
        await stage.publish()
        seen = await quick.next(PARCELS * 5)
        assert time.monotonic() - started < 10
        await stage.until_counted('statesvc_stream_ends_total{cause="slow"}', 1)
        truth = await stage.truth()
        assert [block.data for block in seen] == truth
        early = await received(slow)
        everything = [each["log_index"] for each in truth]
        assert early == everything[: len(early)]
        assert len(early) < len(everything)
        after = early[-1] if early else -1
        async with stage.source(Last_Event_ID=str(after)) as back:
            rest = await back.next(len(everything) - len(early))
        assert [*early, *(int(block.id.removeprefix("1.")) for block in rest)] == everything


async def test_a_client_that_does_not_read_does_not_hold_up_the_stop(
    staged: Callable[..., Any],
) -> None:
    patient = StreamLimits(clients_max=9, clients_per_key_max=9, send_seconds=60)
    async with staged(limits=patient) as stage, idle_reader(stage):
        await stage.publish_moves(*(f"1Z{place}" for place in range(PARCELS)))
        await asyncio.sleep(0.3)
        assert stage.counted("statesvc_stream_transitions_total") < PARCELS * 5
        started = time.monotonic()
        stage.streams.stop()
        await stage.until_counted('statesvc_stream_ends_total{cause="stopping"}', 1)
        assert time.monotonic() - started < 3
