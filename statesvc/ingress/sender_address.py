"""The address that a request comes from, past the proxies that the operator trusts.

Only a trusted proxy's `X-Forwarded-For` is believed, from its end: whatever stands before the first address that is no such proxy was
written by the sender himself.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from aiohttp import web

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

FORWARDED: Final = "X-Forwarded-For"


def sender_address(request: web.Request, proxies: Sequence[Network]) -> Address | None:
    """None where it is not told, or told in a form that is no address."""
    chain = [part.strip() for header in request.headers.getall(FORWARDED, ()) for part in header.split(",")]
    here = _address(request.remote or "")
    while here is not None and chain and is_within(here, proxies):
        here = _address(chain.pop())
    return here


def is_within(address: Address, networks: Sequence[Network]) -> bool:
    """Whether the address is in one of the networks."""
    return any(address in network for network in networks)


def _address(text: str) -> Address | None:
    """An IPv4 address inside an IPv6 one is the IPv4 address."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address
