"""Every kind of target of a subscription behind one call, chosen by the URL's scheme."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Final, Self

from yarl import URL

from statesvc.delivery.addresses import Network
from statesvc.delivery.http_sender import HttpSender
from statesvc.delivery.outcome import CONNECT_SECONDS, TOTAL_SECONDS, Answer, AttemptOutcome
from statesvc.delivery.outgoing import Destination, Outgoing
from statesvc.delivery.own_headers import merged
from statesvc.delivery.target_kind import missing_kind, target_kinds

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
        self._http_sender = HttpSender(
            allowed=allowed,
            connect_seconds=connect_seconds,
            total_seconds=total_seconds,
            proxy=proxy,
        )
        kinds = target_kinds()
        senders = {
            kind: kind.sender(
                allowed=allowed,
                source=source,
                connect_seconds=connect_seconds,
                total_seconds=total_seconds,
            )
            for kind in set(kinds.values())
        }
        self._broker_senders = {scheme: senders[kind] for scheme, kind in kinds.items()}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._http_sender)
        for sender in set(self._broker_senders.values()):
            await self._stack.enter_async_context(sender)
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
        return sum(sender.open_count for sender in set(self._broker_senders.values()))

    async def send(self, destination: Destination, outgoing: Outgoing) -> Answer:
        """Send it, once. Every failure of the other side is an answer, not an exception."""
        scheme = URL(destination.url).scheme
        if scheme in self._broker_senders:
            return await self._broker_senders[scheme].send(destination, outgoing)
        if (missing := missing_kind(scheme)) is not None:
            return Answer(
                outcome=AttemptOutcome.CLIENT_MISSING,
                duration_seconds=0.0,
                response=missing.encode(),
                detail=missing,
            )
        return await self._http_sender.send(
            destination.url,
            headers=merged(destination.headers, outgoing.headers),
            body=outgoing.body,
        )
