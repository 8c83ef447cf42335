"""Wake-ups between processes of a machine: a datagram each, cheaper than a NOTIFY.

A NOTIFY costs a statement and wakes every listener. Listeners bind a socket `CHANNEL.SINCE.TOKEN`
in a shared folder. NOTIFY still goes out for listeners elsewhere; its payload is the sender's id,
so local listeners need not claim again.
"""

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from statesvc.database.wakeups.wakeup import ONE_IS_ENOUGH


class LocalWaker:
    """Sends wake-ups as `sender`."""

    def __init__(self, folder: Path, *, sender: str) -> None:
        self._folder = folder
        self._sender = sender.encode()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)

    def wake(self, channel: str) -> bool:
        """Wake the channel's listener on this machine; return whether there is one. Never waits.

        If a single listener is enough, the oldest is woken: it ignores the sender's
        notifications, and must go on hearing it. The others get the notification.
        """
        reached = False
        with suppress(OSError):
            # a few names, at each wake-up
            for name in sorted(os.listdir(self._folder)):  # noqa: PTH208
                if name.startswith(f"{channel}."):
                    # a string: joining paths takes longer than sending
                    reached = self._send(f"{self._folder}/{name}") or reached
                    if reached and channel in ONE_IS_ENOUGH:
                        break
        return reached

    def close(self) -> None:
        """Close the socket. Safe to call twice."""
        self._socket.close()

    def _send(self, path: str) -> bool:
        try:
            self._socket.sendto(self._sender, path)
        except BlockingIOError:
            return True  # it has wake-ups waiting
        except ConnectionRefusedError:
            Path(path).unlink(missing_ok=True)  # its process died
            return False
        except OSError:
            return False
        return True


class LocalListener:
    """Receives, in the running loop, until it is closed.

    `heard` is called with the channel and the sender.
    """

    def __init__(
        self, folder: Path, channels: Iterable[str], heard: Callable[[str, str], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._heard = heard
        self._sockets: dict[str, tuple[Path, socket.socket]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        for channel in channels:
            # the time in digits of one length: sorted names are sorted by age
            path = folder / f"{channel}.{time.time_ns():020d}.{secrets.token_hex(4)}"
            bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            bound.bind(str(path))
            self._sockets[channel] = path, bound
            self._loop.add_reader(bound, self._read, channel, bound)

    def close(self) -> None:
        """Close the socket. Safe to call twice."""
        for path, bound in self._sockets.values():
            self._loop.remove_reader(bound)
            bound.close()
            path.unlink(missing_ok=True)
        self._sockets.clear()

    @contextmanager
    def paused(self, channel: str) -> Iterator[None]:
        """Hold wake-ups of the channel back: they do not even wake the process."""
        if channel in self._sockets:
            # unread datagrams stay in the socket's buffer; a full buffer means a wake-up is
            # waiting, which is enough
            self._loop.remove_reader(self._sockets[channel][1])
        try:
            yield
        finally:
            if channel in self._sockets:
                _, bound = self._sockets[channel]
                # before the reader is back: datagrams that came during the pause would else wait
                # for the next one
                self._read(channel, bound)
                self._loop.add_reader(bound, self._read, channel, bound)

    def _read(self, channel: str, bound: socket.socket) -> None:
        with suppress(BlockingIOError):
            while True:
                self._heard(channel, bound.recv(64).decode())
