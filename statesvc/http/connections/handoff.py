"""Client sockets, handed from a process of this machine to another over a unix socket.

A frame holds the number of bytes read, whether both processes have answered requests, and those
bytes; the socket comes along (SCM_RIGHTS). So the answering process talks to the client directly.
Both ends give and take; `api` listens, `ingress` connects, repeatedly.
"""

import asyncio
import os
import socket
import struct
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import structlog

RETRY_SECONDS: Final = 0.1
# Sockets that may wait for the other end to read: with more it does not work.
QUEUE_MAX: Final = 1024
_HEADER: Final = struct.Struct(">I?")
_READ_BYTES: Final = 256 * 1024
_CLOSE_ON_EXEC: Final = getattr(socket, "MSG_CMSG_CLOEXEC", 0)

# Takes over a connection: its socket, the bytes read, whether both processes have answered on it.
Adopt = Callable[[socket.socket, bytes, bool], None]

log = structlog.get_logger()


class Handoff:
    """An end of the channel. `adopt` must be set before `run`."""

    def __init__(self, path: Path, *, listens: bool, adopt: Adopt) -> None:
        self._path = path
        self._listens = listens
        self._adopt = adopt
        self._channel: _Channel | None = None
        self._stopping = asyncio.Event()
        self.was_up = False

    @property
    def is_up(self) -> bool:
        return self._channel is not None

    def give(self, fd: int, head: bytes, *, is_shared: bool) -> bool:
        """Send a copy of the socket.

        Return False (and send none) if the other process is away or slow.
        """
        return self._channel is not None and self._channel.give(fd, head, is_shared=is_shared)

    async def run(self) -> None:
        """Keep the two connected until `stop`."""
        if self._listens:
            with suppress(FileNotFoundError):
                # left by a process that died: bind would refuse the name
                self._path.unlink()
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
                listener.bind(str(self._path))
                # whoever can connect here gets clients' connections
                self._path.chmod(0o600)
                listener.listen()
                listener.setblocking(False)
                await self._keep(lambda: _accept(listener))
        else:
            await self._keep(lambda: _connect(self._path))

    def stop(self) -> None:
        """End `run`; the other end still reads frames that were sent."""
        self._stopping.set()

    async def _keep(self, join: Callable[[], Coroutine[None, None, socket.socket]]) -> None:
        stopped: asyncio.Future[Any] = asyncio.create_task(
            self._stopping.wait(), name="handoff-stop"
        )
        while not stopped.done():
            joining: asyncio.Future[Any] = asyncio.create_task(join(), name="handoff-join")
            await asyncio.wait([joining, stopped], return_when=asyncio.FIRST_COMPLETED)
            if not joining.done():
                joining.cancel()
                break
            self._channel = _Channel(joining.result(), self._adopt)
            self.was_up = True
            log.info("handoff_up")
            await asyncio.wait([self._channel.lost, stopped], return_when=asyncio.FIRST_COMPLETED)
            channel, self._channel = self._channel, None
            channel.close()
            if not stopped.done():
                log.warning("handoff_lost", delay_seconds=RETRY_SECONDS)
        stopped.cancel()


async def _accept(listener: socket.socket) -> socket.socket:
    joined, _ = await asyncio.get_running_loop().sock_accept(listener)
    return joined


async def _connect(path: Path) -> socket.socket:
    while True:
        joined = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        joined.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(joined, str(path))
        except OSError:
            joined.close()
            await asyncio.sleep(RETRY_SECONDS)
        else:
            return joined


class _Channel:
    """The connected socket, until it is lost."""

    def __init__(self, joined: socket.socket, adopt: Adopt) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = joined
        joined.setblocking(False)
        self._adopt = adopt
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self._received = bytearray()
        self._fds: deque[int] = deque()
        self._frames: deque[tuple[int, bytes]] = deque()
        self._sent = 0
        self._loop.add_reader(joined, self._read)

    def give(self, fd: int, head: bytes, *, is_shared: bool) -> bool:
        # the caller then keeps the connection
        if self.lost.done() or len(self._frames) >= QUEUE_MAX:
            return False
        # a copy: the caller closes its own when it has given the connection away
        self._frames.append((os.dup(fd), _HEADER.pack(len(head), is_shared) + head))
        if len(self._frames) == 1:
            self._write()
        return True

    def close(self) -> None:
        """Close it; unsent frames are dropped."""
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        # nobody else knows these descriptors: left open they would stay until the process ends
        for fd in (*self._fds, *(fd for fd, _ in self._frames)):
            os.close(fd)
        self._fds.clear()
        self._frames.clear()

    def _read(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self._socket, _READ_BYTES, 16, _CLOSE_ON_EXEC)
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        # before the data: a frame may arrive in two reads, its socket with the first
        self._fds.extend(fds)
        # an end of file, and not an empty datagram: the socket is a stream
        if not data:
            self._lose()
            return
        self._received += data
        while (found := self._frame()) is not None:
            head, is_shared = found
            self._adopt(socket.socket(fileno=self._fds.popleft()), head, is_shared)

    def _frame(self) -> tuple[bytes, bool] | None:
        """Return the next complete frame."""
        if len(self._received) < _HEADER.size:
            return None
        count, is_shared = _HEADER.unpack_from(self._received)
        end = _HEADER.size + count
        if len(self._received) < end:
            return None
        head = bytes(self._received[_HEADER.size : end])
        del self._received[:end]
        return head, is_shared

    def _write(self) -> None:
        try:
            while self._frames:
                fd, frame = self._frames[0]
                if self._sent:
                    self._sent += self._socket.send(frame[self._sent :])
                else:
                    # the socket goes with the first byte
                    self._sent = socket.send_fds(self._socket, [frame], [fd])
                if self._sent == len(frame):
                    os.close(fd)
                    self._frames.popleft()
                    self._sent = 0
        except BlockingIOError:
            self._loop.add_writer(self._socket, self._write)
            return
        except OSError:
            self._lose()
        self._loop.remove_writer(self._socket)

    def _lose(self) -> None:
        self._loop.remove_reader(self._socket)
        if not self.lost.done():
            self.lost.set_result(None)
