"""A real S3 server (moto's) behind a proxy that can cut it off.

Its own environment: what it needs contradicts what we need.
"""

import asyncio
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from threading import Thread
from typing import Final
from urllib.error import URLError
from urllib.request import Request, urlopen

import obstore
import pytest
from obstore.store import S3Store

from tests.soak.proxy import Proxy
from tests.world.ports import free_port
from tests.world.programs import required_moto

_START_SECONDS: Final = 60.0
_numbers: Final = count(1)


class ObjectStore:
    """A bucket of its own."""

    def __init__(self, server_port: int, proxy: Proxy, loop: asyncio.AbstractEventLoop) -> None:
        self.bucket = f"bucket-{next(_numbers)}"
        self._proxy, self._loop = proxy, loop
        self._past_proxy = S3Store(
            self.bucket,
            endpoint=f"http://127.0.0.1:{server_port}",
            access_key_id="key",
            secret_access_key="secret",
            client_options={"allow_http": True},
        )

    def place(self, prefix: str = "") -> str:
        """Return the place as a setting names it."""
        return f"s3://{self.bucket}/{prefix}?endpoint=http://127.0.0.1:{self._proxy.port}"

    @property
    def objects(self) -> dict[str, bytes]:
        """Objects that lie there, by key."""
        keys = [each["path"] for some in obstore.list(self._past_proxy) for each in some]
        return {key: bytes(obstore.get(self._past_proxy, key).bytes()) for key in sorted(keys)}

    def put(self, key: str, body: bytes) -> None:
        obstore.put(self._past_proxy, key, body)

    def delete(self, *keys: str) -> None:
        obstore.delete(self._past_proxy, keys)

    def cut(self) -> None:
        """Cut every connection, until `heal`."""
        self._loop.call_soon_threadsafe(self._proxy.cut)

    def heal(self) -> None:
        self._loop.call_soon_threadsafe(self._proxy.heal)


@pytest.fixture(scope="session")
def s3_port(own_processes: None) -> Iterator[int]:  # noqa: ARG001 - a mark
    """Return the server's port. One a test worker: it takes a second to start."""
    port = free_port()
    process = subprocess.Popen(
        [required_moto(), "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _until_answered(process, port)
        yield port
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def object_store(s3_port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """Make an empty bucket, and put into the environment what opens it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    # a loop of its own: the test's may be what waits for the store
    loop, proxy = asyncio.new_event_loop(), Proxy(s3_port)
    thread = Thread(target=loop.run_forever, name="object store proxy")
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(proxy.start(), loop).result()
        store = ObjectStore(s3_port, proxy, loop)
        _ask(Request(f"http://127.0.0.1:{s3_port}/{store.bucket}", data=b"", method="PUT"))
        yield store
        asyncio.run_coroutine_threadsafe(proxy.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _until_answered(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(URLError, ConnectionError):
            _ask(Request(f"http://127.0.0.1:{port}/moto-api/"))
            return
        time.sleep(0.05)
    raise RuntimeError("moto did not answer")


def _ask(request: Request) -> None:
    with urlopen(request, timeout=10):  # noqa: S310 - a server of this machine
        pass
