"""Every kind of target that a subscription may have, behind one call. The URL's scheme says which it is."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Final, Self

from yarl import URL

from statesvc.addons.brokers.dialling import Dialler
from statesvc.addons.brokers.links import Links
from statesvc.addons.brokers.table import BY_SCHEME
from statesvc.delivery.addresses import Network
from statesvc.delivery.http_sender import HttpSender
from statesvc.delivery.outcome import CONNECT_SECONDS, TOTAL_SECONDS, Answer
from statesvc.delivery.outgoing import Destination, Outgoing
from statesvc.delivery.own_headers import merged

EVENT_SOURCE: Final = "/statesvc"


class Targets:
    """Open as long as it is used. The caller bounds how many are in flight."""

    def __init__(
        self,
        *,
        allowed: Sequence[Network] = (),
        source: str = EVENT_SOURCE,
        connect_seconds: float = CONNECT_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
        proxy: str | None = None,
    ) -> None:
        self._sender = HttpSender(
            allowed=allowed,
            connect_seconds=connect_seconds,
            total_seconds=total_seconds,
            proxy=proxy,
        )
        self._links = Links(
            Dialler(allowed),
            source=source,
            connect_seconds=connect_seconds,
            total_seconds=total_seconds,
        )
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._sender)
        await self._stack.enter_async_context(self._links)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    @property
    def broker_connections(self) -> int:
        """Number of open connections."""
        return self._links.open_count

    async def send(self, destination: Destination, outgoing: Outgoing) -> Answer:
        """Send it, once. Every failure of the other side is an answer, not an exception."""
        if URL(destination.url).scheme in BY_SCHEME:
            return await self._links.send(destination, outgoing)
        return await self._sender.send(
            destination.url,
            headers=merged(destination.headers, outgoing.headers),
            body=outgoing.body,
        )
