"""Answers of receivers, and why a connection failed."""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from ipaddress import ip_network

import pytest

from statesvc.delivery.addresses import AddressRefusedError
from statesvc.delivery.connection_failure import outcome_of_failure
from statesvc.delivery.http_sender import HttpSender
from statesvc.delivery.outcome import Answer, AttemptOutcome

LOOPBACK = (ip_network("127.0.0.0/8"),)
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n"
Pieces = Callable[[bytes], list[bytes]]


def whole(answer: bytes) -> list[bytes]:
    return [answer]


def each_byte(answer: bytes) -> list[bytes]:
    return [answer[place : place + 1] for place in range(len(answer))]


async def send(answer: bytes, pieces: Pieces, *, times: int = 2) -> tuple[list[Answer], int]:
    """Send, and return the answers, and how many connections they took."""
    connections = 0

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(2)
                for piece in pieces(answer):
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server, HttpSender(allowed=LOOPBACK, total_seconds=1) as sender:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        return [await sender.send(url, headers={}, body=b"{}") for _ in range(times)], connections


@pytest.mark.parametrize("pieces", [whole, each_byte])
@pytest.mark.parametrize(
    ("answer", "status_code", "body"),
    [
        (NO_CONTENT + b"Content-Length: 4\r\nContent-Type: application/json\r\n\r\nnull", 204, b""),
        (NO_CONTENT + b"\r\nnull", 204, b""),
        (NO_CONTENT + b"Transfer-Encoding: chunked\r\n\r\n4\r\nnull\r\n0\r\n\r\n", 204, b""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more", 200, b"ok"),
        (b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n{}", 500, b""),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + NO_CONTENT + b"\r\nnull", 204, b""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nzz", 200, b"ok"),
    ],
)
async def test_a_status_line_that_was_received_is_the_answer_however_it_arrives(
    answer: bytes, status_code: int, body: bytes, pieces: Pieces
) -> None:
    # where it comes piece by piece, the rest may meet the next request
    times = 2 if pieces is whole else 1
    answers, connections = await send(answer, pieces, times=times)
    outcome = AttemptOutcome.DELIVERED if status_code < 300 else AttemptOutcome.REFUSED
    assert [(each.outcome, each.status_code, each.response) for each in answers] == [
        (outcome, status_code, body)
    ] * times
    assert connections == times


@pytest.mark.parametrize("header", [b"Content-Length: 4", b"transfer-encoding: chunked"])
async def test_a_body_that_is_announced_where_there_can_be_none_does_not_meet_the_next_request(
    header: bytes,
) -> None:
    answer = NO_CONTENT + header + b"\r\n\r\n4\r\nnull\r\n0\r\n\r\n"
    answers, connections = await send(answer, each_byte)
    assert [each.outcome for each in answers] == [AttemptOutcome.DELIVERED] * 2
    assert connections == 2


@pytest.mark.parametrize("pieces", [whole, each_byte])
@pytest.mark.parametrize(
    "answer",
    [
        NO_CONTENT + b"\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ],
)
async def test_a_connection_of_a_lawful_answer_is_used_again(answer: bytes, pieces: Pieces) -> None:
    answers, connections = await send(answer, pieces)
    assert [each.outcome for each in answers] == [AttemptOutcome.DELIVERED] * 2
    assert connections == 1


@pytest.mark.parametrize(
    "answer", [b"no HTTP at all\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Le", b""]
)
async def test_what_is_no_whole_head_is_no_answer(answer: bytes) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server, HttpSender(allowed=LOOPBACK, total_seconds=5) as sender:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        assert (
            await sender.send(url, headers={}, body=b"{}")
        ).outcome is AttemptOutcome.UNREACHABLE


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ConnectionRefusedError(), AttemptOutcome.CONNECTION_REFUSED),
        (
            OSError(errno.ECONNREFUSED, "Multiple exceptions: [Errno 111] ..."),
            AttemptOutcome.CONNECTION_REFUSED,
        ),
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            AttemptOutcome.NAME_NOT_FOUND,
        ),
        (
            ssl.SSLCertVerificationError("self-signed certificate"),
            AttemptOutcome.CERTIFICATE_NOT_TRUSTED,
        ),
        (ssl.SSLError("wrong version number"), AttemptOutcome.UNREACHABLE),
        (TimeoutError(), AttemptOutcome.TIMED_OUT),
        (OSError(errno.ETIMEDOUT, "Connect call failed"), AttemptOutcome.TIMED_OUT),
        (OSError(errno.EHOSTUNREACH, "No route to host"), AttemptOutcome.UNREACHABLE),
        (ConnectionResetError(), AttemptOutcome.UNREACHABLE),
        (AddressRefusedError(), AttemptOutcome.ADDRESS_REFUSED),
    ],
)
def test_it_is_named_as_the_error_or_what_it_is_about_says(
    error: OSError, outcome: AttemptOutcome
) -> None:
    assert outcome_of_failure(error) is outcome
    about_it = RuntimeError("a client failed")
    about_it.__cause__ = error
    assert outcome_of_failure(about_it) is outcome


def test_errors_that_are_about_each_other_end() -> None:
    first, second = RuntimeError(), RuntimeError()
    first.__cause__, second.__cause__ = second, first
    assert outcome_of_failure(first) is AttemptOutcome.UNREACHABLE
