"""Which URLs a subscription may have.

What is checked is what is stored, and both are read by the parser that the sender uses. The check of the address at connect time stays
the one that protects; this one tells a caller early and in words.
"""

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final

from yarl import URL

from statesvc.notifier.addresses import Network, may_connect

URL_CHARS_MAX: Final = 2_000
_RESOLVE_SECONDS: Final = 2.0


class UrlRefusedError(ValueError):
    """The URL can't be a subscriber's. The text says why and what to do, and does not repeat it."""


async def checked_url(text: str, allowed: Sequence[Network]) -> str:
    """The URL as it is stored and called. `UrlRefusedError` where it may not be one."""
    url = _parsed(text)
    host = url.host
    assert host is not None  # noqa: S101 - `_parsed` refuses a URL without a host
    literal = _literal(host)
    if literal is not None and not may_connect(literal, allowed):
        raise UrlRefusedError(
            "this address lies in a network that subscribers may not live in: name its network in STATESVC_SUBSCRIBER_ALLOW"
        )
    if url.scheme == "http" and not await _lies_within(literal or host, url.port or 80, allowed):
        raise UrlRefusedError("must be https: plain http is only for hosts in the networks of STATESVC_SUBSCRIBER_ALLOW")
    return str(url)


def _parsed(text: str) -> URL:
    if len(text) > URL_CHARS_MAX:
        raise UrlRefusedError(f"may have {URL_CHARS_MAX} characters at most")
    if not text.isprintable() or " " in text:
        raise UrlRefusedError("holds blanks or control characters: percent-encode them")
    try:
        url = URL(text)
        port = url.port
    except ValueError:
        raise UrlRefusedError("is no URL: write it as https://host/path") from None
    if url.scheme not in {"https", "http"} or not url.host or not port:
        raise UrlRefusedError("must begin with https:// and name a host")
    if url.user is not None or url.password is not None:
        raise UrlRefusedError("holds a user name or password: receivers verify the signature instead")
    return url.with_fragment(None)


def _literal(host: str) -> str | None:
    try:
        return str(ip_address(host))
    except ValueError:
        return None


async def _lies_within(host: str, port: int, allowed: Sequence[Network]) -> bool:
    """Whether every address of the host is in an allowed network."""
    if not allowed:
        return False
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError):
        return False
    addresses = {ip_address(str(where[0]).partition("%")[0]) for *_, where in found}
    return bool(addresses) and all(any(address in network for network in allowed) for address in addresses)
