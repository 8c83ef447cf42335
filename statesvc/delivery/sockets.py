"""Sockets to subscribers, made only for addresses that they may live at.

The check is where the socket is made, on the address that it will really connect to: a check of the name before, or in a resolver, is
bypassed by IP literals and by names that change their answer.
"""

import errno
import socket
from collections.abc import Sequence
from typing import Any

from statesvc.delivery.addresses import Network, is_allowed, may_connect


class AddressRefusedError(OSError):
    """The host has this address, but a subscriber may not live there."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "subscribers may not live at this address")


class Sockets:
    """Factories in the shape that connectors take: `addrinfo` is one tuple of `getaddrinfo`."""

    def __init__(self, allowed: Sequence[Network] = ()) -> None:
        self._allowed = tuple(allowed)

    def open(self, addrinfo: tuple[Any, ...]) -> socket.socket:
        """For what is encrypted. `AddressRefusedError` where nobody may live."""
        family, kind, protocol, _, where = addrinfo
        if not may_connect(where[0], self._allowed):
            raise AddressRefusedError
        return socket.socket(family=family, type=kind, proto=protocol)

    def open_plain(self, addrinfo: tuple[Any, ...]) -> socket.socket:
        """A name that was in an allowed network when its URL was taken may be elsewhere now: nothing goes there unencrypted."""
        if not is_allowed(addrinfo[4][0], self._allowed):
            raise AddressRefusedError
        return self.open(addrinfo)
