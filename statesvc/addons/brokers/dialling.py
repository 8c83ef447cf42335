"""Connections to brokers, opened only to addresses that subscribers may have.

The clients of brokers resolve names and connect by themselves, and some follow addresses that the
other side gives them. Here they get sockets that were opened under the same check as a webhook's.
"""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from aiohappyeyeballs import start_connection

from statesvc.delivery.addresses import Network, Sockets

_NEXT_ADDRESS_SECONDS: Final = 0.25

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Dialler:
    """`tls_context`: trusted certificates; by default the system's (SSL_CERT_FILE names others)."""

    def __init__(
        self, allowed: Sequence[Network] = (), *, tls_context: ssl.SSLContext | None = None
    ) -> None:
        self._sockets = Sockets(allowed)
        self._given_context = tls_context

    @cached_property
    def tls_context(self) -> ssl.SSLContext:
        """Context for connections that are encrypted later than at their start."""
        return self._given_context or ssl.create_default_context()

    async def connect(self, host: str, port: int, *, tls: bool) -> socket.socket:
        """Return a connected socket, not encrypted yet; `tls`: it will be.

        `AddressRefusedError` for an address that no subscriber may have.
        """
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        factory = self._sockets.open if tls else self._sockets.open_plain
        return await start_connection(
            found, happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS, socket_factory=factory
        )

    async def open(
        self, host: str, port: int, *, tls: bool, encrypt_later: bool = False
    ) -> Streams:
        """Open streams to it.

        `encrypt_later`: with `tls`, the caller encrypts when the protocol asks.
        """
        connected = await self.connect(host, port, tls=tls)
        try:
            if tls and not encrypt_later:
                return await asyncio.open_connection(
                    sock=connected, ssl=self.tls_context, server_hostname=host
                )
            return await asyncio.open_connection(sock=connected)
        except BaseException:
            connected.close()
            raise
