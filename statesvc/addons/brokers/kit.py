"""What a broker's module is written with: its URL, the message, checked connections, the interface.

A message is a CloudEvent 1.0 in binary content mode: data in the body, attributes beside it, which
each module maps by its protocol binding. Connections are opened only to addresses that subscribers
may have: the clients of brokers resolve names and connect by themselves, and some follow addresses
that the other side gives them, so they get sockets that were opened under the same check as a
webhook's.
"""

import asyncio
import socket
import ssl
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Protocol
from urllib.parse import unquote

from aiohappyeyeballs import start_connection
from yarl import URL

from events.entry.kinds import rfc3339
from statesvc.delivery.addresses import Network, Sockets
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.delivery.outgoing import Login, Outgoing
from statesvc.delivery.target_kind import UrlFlawError


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerUrl:
    """The parts of a URL without its login.

    `path`: its segments, decoded; `tls`: the connection must be encrypted.
    """

    scheme: str
    host: str
    port: int
    tls: bool
    path: tuple[str, ...]
    options: Mapping[str, str]

    @property
    def netloc(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def segments(self, *names: str) -> tuple[str, ...]:
        """Return the segments of the path, one for each name.

        Raises UrlFlawError for another number.
        """
        if len(self.path) != len(names):
            raise UrlFlawError(
                f"must be written {self.scheme}://host/{'/'.join(names)}; percent-encode a slash"
                " inside a part"
            )
        return self.path

    def check_options(self, known: Collection[str]) -> None:
        """Check the options. Raises UrlFlawError for unknown ones."""
        for name in self.options:
            if name not in known:
                raise UrlFlawError(
                    f"has an option that {self.scheme} does not know; it knows"
                    f" {', '.join(sorted(known)) or 'none'}"
                )


def split_login(url: URL) -> tuple[URL, Login | None]:
    """Return the URL as it may be shown, and the login that it held."""
    if url.user is None and url.password is None:
        return url, None
    return url.with_user(None), Login(user=url.user or "", password=url.password)


def read_url(url: URL, *, default_port: int, tls: bool) -> BrokerUrl:
    """Parse a URL without login. `UrlFlawError` where it is not of the common form."""
    host = url.host
    if not host:
        raise UrlFlawError("must name a host")
    if len(set(url.query.keys())) != len(url.query):
        raise UrlFlawError("has an option twice")
    return BrokerUrl(
        scheme=url.scheme,
        host=host,
        port=url.port or default_port,
        tls=tls,
        path=tuple(unquote(segment) for segment in url.raw_path.removeprefix("/").split("/")),
        options=dict(url.query),
    )


CONTENT_TYPE: Final = "application/json"
_SIGNATURE_HEADERS: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudEvent:
    """`attributes` without `datacontenttype`, which is CONTENT_TYPE and which
    bindings map differently.

    `signature`: the headers that let a consumer check with a library of Standard Webhooks
    that the data is ours.
    """

    id: str
    partition_key: str
    """Messages with the same key keep their order."""
    attributes: Mapping[str, str]
    signature: Mapping[str, str]
    data: bytes = field(repr=False)

    def headers(self, prefix: str) -> dict[str, str]:
        """Return the attributes under a binding's prefix, and the signature under its own names."""
        return {
            **{prefix + name: value for name, value in self.attributes.items()},
            **self.signature,
        }


def cloud_event(outgoing: Outgoing, *, source: str) -> CloudEvent:
    """Build the event. `source` names this installation; with the id it is unique."""
    attributes = {
        "specversion": "1.0",
        "id": outgoing.webhook_id,
        "source": source,
        "type": outgoing.type,
        "subject": outgoing.subject,
        "time": rfc3339(outgoing.at),
        "partitionkey": outgoing.subject,
    }
    if outgoing.sequence is not None:
        # the extension wants strings that sort as the numbers do
        attributes["sequence"] = f"{outgoing.sequence:010d}"
    return CloudEvent(
        id=outgoing.webhook_id,
        partition_key=outgoing.subject,
        attributes=attributes,
        signature={
            name: outgoing.headers[name] for name in _SIGNATURE_HEADERS if name in outgoing.headers
        },
        data=outgoing.body,
    )


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


class PublishRefusedError(Exception):
    """The broker answered that it did not store the message. `detail`: its own words, if any."""

    def __init__(self, outcome: AttemptOutcome, detail: str) -> None:
        super().__init__(outcome.value)
        self.outcome = outcome
        self.detail = detail


class ConnectionLostError(OSError):
    """The connection ended before the broker answered: it may have the message."""


class Connection(Protocol):
    """Several tasks may publish at a time; each waits for its own confirmation.

    The caller sets timeouts.
    """

    @property
    def is_open(self) -> bool:
        """False once it can no longer publish."""

    async def publish(self, event: CloudEvent) -> str:
        """Publish; return the broker's account of the message's place, once it is stored.

        Raises PublishRefusedError, or OSError if the outcome is unknown.
        """

    async def close(self) -> None:
        """Close the connection; pending confirmations are lost."""


class Client(Protocol):
    def check(self, url: BrokerUrl, login: Login | None) -> None:
        """Check a URL. Raises UrlFlawError if it names no target."""

    async def connect(self, url: BrokerUrl, login: Login | None, dialler: Dialler) -> Connection:
        """Open a connection.

        `PublishRefusedError` where the broker does not let us in, an OSError where there is none.
        """
