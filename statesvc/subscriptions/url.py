"""URLs that a subscription may have.

Host and port that are checked are those that are stored, and read by the parser that the sender
uses; path and query are stored as they are. The check of the address at connect time stays the one
that protects; this one answers a caller early and in words.
"""

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final

from yarl import URL

from statesvc.delivery.addresses import Network, may_connect
from statesvc.delivery.outgoing import Login
from statesvc.delivery.target_kind import UrlFlawError, missing_kind, target_kinds
from statesvc.delivery.webhook_url import webhook_url

URL_CHARS_MAX: Final = 2_000
_RESOLVE_SECONDS: Final = 2.0
_WEBHOOK_PORTS: Final = {"https": 443, "http": 80}


class UrlRefusedError(ValueError):
    """The URL can't be a subscriber's. The text has reason and remedy, without the URL."""


async def checked_url(text: str, allowed: Sequence[Network]) -> tuple[str, Login | None]:
    """Return the URL as it is stored and shown, and the login that a broker's held.

    `UrlRefusedError` where it may not be one.
    """
    url = _parsed(text)
    kind = target_kinds().get(url.scheme)
    login = None
    if kind is None:
        if url.user is not None or url.password is not None:
            raise UrlRefusedError(
                "holds a user name or password: receivers verify the signature instead"
            )
        port, encrypted, better = (
            url.port or _WEBHOOK_PORTS[url.scheme],
            url.scheme == "https",
            "https",
        )
    else:
        try:
            url, login, port, encrypted, better = kind.check(url)
        except UrlFlawError as error:
            raise UrlRefusedError(str(error)) from None
    host = url.host
    assert host is not None  # noqa: S101 - `_parsed` refuses a URL without a host
    # a number in any spelling that the parser takes: names are judged when the socket is made
    literal = _literal(host)
    if literal is not None and not may_connect(literal, allowed):
        raise UrlRefusedError(
            "this address lies in a network that subscribers may not be in: name its network in"
            " STATESVC_SUBSCRIBER_ALLOW"
        )
    # an encrypted URL is not resolved: the connect is checked anyway, and a name may be of another
    # network
    if not encrypted and not await _lies_within(literal or host, port, allowed):
        own = (
            " (127.0.0.0/8 is the service's own machine)"
            if url.host in {"localhost", "127.0.0.1"}
            else ""
        )
        raise UrlRefusedError(
            f"must be {better}: plain {url.scheme} is only for hosts in the networks of"
            f" STATESVC_SUBSCRIBER_ALLOW{own}"
        )
    return str(webhook_url(text) if kind is None else url), login


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
    kinds = target_kinds()
    if url.scheme not in {*_WEBHOOK_PORTS, *kinds} or not url.host or port == 0:
        if missing := missing_kind(url.scheme):
            raise UrlRefusedError(f"is not served: {missing}")
        others = f", or with {', '.join(f'{scheme}://' for scheme in kinds)}" if kinds else ""
        raise UrlRefusedError(f"must begin with https:// and name a host{others}")
    # a fragment is never sent, and may hold what its owner takes for private
    return url.with_fragment(None)


def _literal(host: str) -> str | None:
    try:
        return str(ip_address(host))
    except ValueError:
        return None


async def _lies_within(host: str, port: int, allowed: Sequence[Network]) -> bool:
    """Return whether every address of the host is in an allowed network.

    Raises UrlRefusedError for a host without an address.
    """
    if not allowed:
        return False
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            )
    except (OSError, UnicodeError, TimeoutError):
        raise UrlRefusedError(
            "names a host whose address cannot be found here: is it spelled as its name server has"
            " it? (A URL that is encrypted is not asked.)"
        ) from None
    addresses = {ip_address(str(where[0]).partition("%")[0]) for *_, where in found}
    # all of them: the sender may connect to any
    return bool(addresses) and all(
        any(address in network for network in allowed) for address in addresses
    )
