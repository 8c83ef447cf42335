"""Bounds of a process's connections: in all, per address, and the time for a request's head.

Every connection is a file of the process; without a free file it can open no database connection
either. So the bound lies below the limit of the system, and an address has a share of it. Our own
proxies carry many clients and have no share.
"""

import ipaddress
import resource
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

HEAD_SECONDS: Final = 10.0
FILES_WANTED: Final = 65_536
# For the database, logs, archives and libraries.
FILES_RESERVED: Final = 128
CONNECTIONS_MAX: Final = 10_000
# A subscriber of IPv6 has a network of this size at least.
_IPV6_SHARE: Final = 64

Networks = Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]


def raise_open_files() -> int:
    """Raise the soft limit of open files as far as the system lets it; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def connections_allowed(wanted: int | None, files: int) -> int:
    """Return how many connections to take if a process may open so many files (-1: any)."""
    most = CONNECTIONS_MAX if files == resource.RLIM_INFINITY else max(1, files - FILES_RESERVED)
    return min(CONNECTIONS_MAX if wanted is None else wanted, most)


class ConnectionGate:
    """Counts connections. `refused` receives the cause of each refusal."""

    def __init__(
        self,
        *,
        connections_max: int = CONNECTIONS_MAX,
        per_address_max: int | None = None,
        proxies: Networks = (),
        head_seconds: float = HEAD_SECONDS,
        refused: Callable[[str], None] = lambda _cause: None,
    ) -> None:
        self._connections_max = connections_max
        self._per_address_max = (
            max(1, connections_max // 2) if per_address_max is None else per_address_max
        )
        self._proxies = proxies
        self._by_address: Counter[str] = Counter()
        self.head_seconds = head_seconds
        self.refused = refused
        self.connections = 0

    def enter(self, peer: object) -> str | None:
        """Take one in: return the name of its share, for `leave`; None where it is refused."""
        share = self._share(peer)
        if self.connections >= self._connections_max:
            self.refused("connections")
            return None
        # counted before it is taken in: at the bound not even one more for a moment
        if share and self._by_address[share] >= self._per_address_max:
            self.refused("connections_of_address")
            return None
        self.connections += 1
        self._by_address[share] += 1
        return share

    def leave(self, share: str) -> None:
        """Free the share of a connection that has ended, or moved to another process."""
        self.connections -= 1
        self._by_address[share] -= 1
        if not self._by_address[share]:
            # or every address that ever called would stay in memory
            del self._by_address[share]

    def _share(self, peer: object) -> str:
        """Return the share of the peer; empty: none."""
        if not isinstance(peer, tuple):
            return ""
        try:
            address = ipaddress.ip_address(peer[0].partition("%")[0])
        except ValueError:
            return ""
        if isinstance(address, ipaddress.IPv6Address):
            if address.ipv4_mapped is None:
                is_ours = any(address in network for network in self._proxies)
                return (
                    ""
                    if is_ours
                    else str(ipaddress.ip_network((address, _IPV6_SHARE), strict=False))
                )
            # a dual-stack socket sees IPv4 clients as IPv6: without this all of them would share
            # one /64
            address = address.ipv4_mapped
        return "" if any(address in network for network in self._proxies) else str(address)
