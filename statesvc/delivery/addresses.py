"""The addresses that a subscriber may have, and sockets to those only.

A subscription's URL is chosen by its owner: without this check it could make the service call its
own network (SSRF). The address of the actual connection is judged in every form: an IPv4 address
inside an IPv6 address (mapped, NAT64) counts as the IPv4 address. 6to4 is always refused: it is
unused, and a stranger's relay decides where it leads.

The check is where the socket is made. A check of the name before, or in a resolver, would be
bypassed by IP literals and by names that change their answer.
"""

import errno
import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

# Networks that the operator allows, and no others.
EVERY_NETWORK: Final[tuple[Network, ...]] = (IPv4Network("0.0.0.0/0"), IPv6Network("::/0"))
_NAT64: Final = IPv6Network("64:ff9b::/96")
_REFUSED: Final[tuple[Network, ...]] = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT, and metadata of some clouds
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, cloud metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments, metadata of some clouds
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/3",  # multicast, reserved, broadcast
        "168.63.129.16/32",  # the platform address of Azure's hosts
    )
)
_GLOBAL_IPV6: Final = IPv6Network("2000::/3")
_REFUSED_IPV6: Final = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
        "2620:4f:8000::/48",  # AS112
    )
)


def may_connect(text: str, allowed: Sequence[Network]) -> bool:
    """Return whether a subscriber may have this address.

    `allowed` opens networks that are refused otherwise.
    """
    address = _effective(ip_address(text))
    # first: the operator's networks win over the list of refused ones
    if is_allowed(text, allowed):
        return True
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED)
    return address in _GLOBAL_IPV6 and not any(address in network for network in _REFUSED_IPV6)


def is_allowed(text: str, allowed: Sequence[Network]) -> bool:
    """Return whether this address lies in a network that was opened.

    Only there plain http is used.
    """
    address = _effective(ip_address(text))
    return any(address in network for network in allowed)


def _effective(address: Address) -> Address:
    """Return the IPv4 address inside an IPv6 one, else the address itself without its zone."""
    if isinstance(address, IPv4Address):
        return address
    # drops the zone (`%eth0`), with which no network would contain it
    plain = IPv6Address(int(address))
    if plain.ipv4_mapped is not None:
        return plain.ipv4_mapped
    if plain in _NAT64:
        return IPv4Address(int(plain) & 0xFFFFFFFF)
    return plain


class AddressRefusedError(OSError):
    """The host has this address, but a subscriber may not have it."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "subscribers may not have this address")


class Sockets:
    """Factories in the shape that connectors take: `addrinfo` is one tuple of `getaddrinfo`."""

    def __init__(self, allowed: Sequence[Network] = ()) -> None:
        self._allowed = tuple(allowed)

    def open(self, addrinfo: tuple[Any, ...]) -> socket.socket:
        """Open a socket for an encrypted connection.

        Raises AddressRefusedError for a forbidden address.
        """
        family, kind, protocol, _, where = addrinfo
        # before the socket exists, on the address that will be used: a name cannot change between
        # check and use
        if not may_connect(where[0], self._allowed):
            raise AddressRefusedError
        return socket.socket(family=family, type=kind, proto=protocol)

    def open_plain(self, addrinfo: tuple[Any, ...]) -> socket.socket:
        """Open a socket for plain http; a name that was in an allowed network when its URL was
        taken may be elsewhere now.
        """
        if not is_allowed(addrinfo[4][0], self._allowed):
            raise AddressRefusedError
        return self.open(addrinfo)
