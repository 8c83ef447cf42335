"""Heads that no carrier sends: too long, doubled, not text.

They get a plain refusal, and nothing of them is written down.
"""

import asyncio
import base64
import io
from collections.abc import Iterator
from typing import Any, Final

import pytest

from statesvc.telemetry.logs import configure_logging

SECRET: Final = "Zq9SECRET"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    configure_logging(process="ingress", level="debug", stream=stream)
    yield stream
    configure_logging(process="test")


async def answer(site: Any, head: bytes, body: bytes = b"1") -> int:
    """Return the status of a request of these bytes; 0 where the connection was closed without
    one.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    try:
        writer.write(
            head + b"Host: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        async with asyncio.timeout(10):
            line = await reader.readline()
    finally:
        writer.close()
    return int(line.split()[1]) if line else 0


def post(path: str = "/v1/webhooks/acme", **headers: bytes) -> bytes:
    lines = b"".join(
        name.encode().replace(b"_", b"-") + b": " + value + b"\r\n"
        for name, value in headers.items()
    )
    return f"POST {path} HTTP/1.1\r\n".encode() + lines


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (post(credential=b"new"), 200),
        (post(credential=b"new" + b" " * 4000), 200),
        (post(credential=b"n" * 8000), 401),
        (post(credential=b"n" * 9000), 400),
        (post(f"/v1/webhooks/acme?token={SECRET * 1000}"), 400),
        (post(f"/v1/webhooks/acme?token={SECRET * 100}"), 401),
        (post(X_Long=SECRET.encode() * 1000), 400),
        (post(credential=b"n\xff\xfe\x80w"), 401),
        (post(Authorization=b"Basic " + base64.b64encode(b"\xff\x00")), 401),
        (post(Authorization=b"Basic " + b"=" * 7000), 401),
        (post(Authorization=b"Bearer " + b"." * 7000), 401),
        (post("/v1/webhooks/signed", X_Sign=b"0" * 8000), 401),
        (post("/v1/webhooks/signed", X_Sign=b"\xe9" * 64), 401),
        (post("/v1/webhooks/signed", X_Sign=b""), 401),
    ],
)
async def test_a_head_of_any_bytes_gets_a_plain_answer(
    serve: Any, written: io.StringIO, head: bytes, expected: int
) -> None:
    site = await serve()
    assert await answer(site, head) == expected
    assert SECRET not in written.getvalue()
    assert "request_failed" not in written.getvalue()


async def test_a_header_that_stands_twice_counts_once(serve: Any) -> None:
    site = await serve()
    assert await answer(site, post(credential=b"new") + b"credential: wrong\r\n") == 200
    assert await answer(site, post(credential=b"wrong") + b"credential: new\r\n") == 401


async def test_a_thousand_headers_are_refused(serve: Any) -> None:
    site = await serve()
    many = b"".join(b"X-%d: 1\r\n" % number for number in range(1000))
    assert await answer(site, post(credential=b"new") + many) in {400, 431}
