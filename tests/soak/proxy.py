"""A TCP proxy between service and server: it can cut every connection, or hold back what they
carry.

A stall is what a network does that loses packets and sends them again: nobody is told anything,
then all of it arrives, or a reset because one side has forgotten the connection.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_CHUNK_BYTES = 65_536


class Proxy:
    """Forwards its `port` of the loopback to the server's."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._flows = asyncio.Event()
        self._flows.set()
        self._refuses = False
        self._wires: set[asyncio.StreamWriter] = set()
        self._swallowed: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Server | None = None
        self.port = 0
        self.refused = 0
        """Connections, while it was cut."""

    async def start(self) -> None:
        self._listening = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._listening is not None:
            self._listening.close()
        self.reset()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    def cut(self) -> None:
        """Reset all connections and refuse new ones, until `heal`."""
        self._refuses = True
        self.reset()

    def stall(self) -> None:
        """Carry nothing, in no direction, until `heal`; new connections are taken and get no
        answer.
        """
        self._flows.clear()

    def swallow(self) -> None:
        """Acknowledge whatever the connections that there are still send, and carry none of
        it; new connections work.
        """
        self._swallowed |= self._wires

    def reset(self) -> None:
        """Reset all connections that there are."""
        for wire in list(self._wires):
            wire.transport.abort()

    def heal(self) -> None:
        """Carry again, what was held back first."""
        self._refuses = False
        self._flows.set()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pumps.add(task)
        self._wires.add(writer)
        try:
            if self._refuses:
                self.refused += 1
                return
            with suppress(OSError):
                onward, out = await asyncio.open_connection("127.0.0.1", self._server_port)
                self._wires.add(out)
                try:
                    async with asyncio.TaskGroup() as group:
                        group.create_task(self._pump(reader, out))
                        group.create_task(self._pump(onward, writer))
                finally:
                    self._wires.discard(out)
                    out.transport.abort()
        finally:
            self._wires.discard(writer)
            self._swallowed.discard(writer)
            writer.transport.abort()
            self._pumps.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK_BYTES):
                await self._flows.wait()
                if writer in self._swallowed:
                    continue
                writer.write(data)
                await writer.drain()
        # an end on one side ends the other
        writer.transport.abort()


@asynccontextmanager
async def proxy_to(server_port: int) -> AsyncIterator[Proxy]:
    """Run a proxy for the time of the block."""
    proxy = Proxy(server_port)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
