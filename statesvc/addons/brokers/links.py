"""All links of a process: one for each target, open while it is used."""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

import structlog
from yarl import URL

from statesvc.addons.brokers.kit import (
    CloudEvent,
    Connection,
    ConnectionLostError,
    Dialler,
    PublishRefusedError,
    cloud_event,
    split_login,
)
from statesvc.addons.brokers.table import BY_SCHEME, ClientMissingError
from statesvc.delivery.addresses import Network
from statesvc.delivery.connection_failure import outcome_of_failure
from statesvc.delivery.outcome import CONNECT_SECONDS, TOTAL_SECONDS, Answer, AttemptOutcome
from statesvc.delivery.outgoing import Destination, Outgoing
from statesvc.delivery.target_kind import CheckedTarget, UrlFlawError

LINKS_MAX: Final = 256
IDLE_SECONDS: Final = 60.0
_DETAIL_CHARS_MAX: Final = 500
_log = structlog.get_logger()
CLOSE_SECONDS: Final = 2.0
Connect = Callable[[], Awaitable[Connection]]


class Link:
    """A target and its kept connection, reopened after a loss.

    Publishers share a connection in the making, which may take `connect_seconds`.
    """

    def __init__(self, connect: Connect, *, connect_seconds: float) -> None:
        self.in_use = 0
        """Number of those that publish, or wait for a connection."""
        self._connect = connect
        self._connect_seconds = connect_seconds
        self._connection: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._answered_at = float("-inf")

    @property
    def is_open(self) -> bool:
        return self._connection is not None and self._connection.is_open

    async def publish(self, event: CloudEvent) -> str:
        """Publish, or raise as connecting does.

        A publisher's timeout gives up a silent connection.
        """
        # before the first await: an idle link may be retired at any of them
        self.in_use += 1
        started = _now()
        try:
            connection = await self._opened()
            try:
                stored = await connection.publish(event)
            except PublishRefusedError:
                self._answered_at = _now()
                raise
            except BaseException:
                # a connection without answers may be dead without knowing it
                if self._answered_at < started:
                    self._give_up(connection)
                raise
            self._answered_at = _now()
            return stored
        finally:
            self.in_use -= 1

    async def close(self) -> None:
        """Close the connection. The link may be used again."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        if self._connection is not None:
            self._give_up(self._connection)
        if self._closing:
            await asyncio.wait(self._closing)

    async def _opened(self) -> Connection:
        if self._connection is not None and self._connection.is_open:
            return self._connection
        if self._opening is None:
            self._opening = asyncio.create_task(self._open(), name="broker connection")
            self._opening.add_done_callback(self._end_of_opening)
        # a publisher that gives up must not end the opening for the others
        return await asyncio.shield(self._opening)

    async def _open(self) -> Connection:
        if self._connection is not None:
            self._give_up(self._connection)
        async with asyncio.timeout(self._connect_seconds):
            self._connection = await self._connect()
        return self._connection

    def _end_of_opening(self, opening: asyncio.Task[Connection]) -> None:
        self._opening = None
        if not opening.cancelled():
            # its publishers may have stopped waiting
            opening.exception()

    def _give_up(self, connection: Connection) -> None:
        # another publisher has given it up, and a new one may be open
        if connection is not self._connection:
            return
        self._connection = None
        closing = asyncio.create_task(_closed(connection), name="broker connection closing")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


@dataclass(slots=True)
class _Held:
    link: Link
    retirement: asyncio.TimerHandle | None = field(default=None)


class Links:
    """`source`: of CloudEvents.

    Idle links are closed, the longest idle first if there are too many.
    """

    def __init__(
        self,
        dialler: Dialler,
        *,
        source: str,
        connect_seconds: float = CONNECT_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
        links_max: int = LINKS_MAX,
    ) -> None:
        self._dialler = dialler
        self._source = source
        self._connect_seconds = connect_seconds
        self._total_seconds = total_seconds
        self._idle_seconds = idle_seconds
        self._links_max = links_max
        # by destination, its login included: another password must not use this connection
        self._held: dict[Destination, _Held] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for destination in list(self._held):
            self._retire(destination)
        if self._closing:
            await asyncio.wait(self._closing)

    @property
    def open_count(self) -> int:
        return sum(held.link.is_open for held in self._held.values())

    async def send(self, destination: Destination, outgoing: Outgoing) -> Answer:
        """Publish it. Every failure of the other side is an answer, not an exception."""
        started = time.monotonic()
        outcome, text = await self._outcome(destination, outgoing)
        detail = text[:_DETAIL_CHARS_MAX]
        duration_seconds = time.monotonic() - started
        return Answer(
            outcome=outcome,
            duration_seconds=duration_seconds,
            response=detail.encode("utf-8", "replace"),
            detail=detail,
        )

    async def _outcome(
        self, destination: Destination, outgoing: Outgoing
    ) -> tuple[AttemptOutcome, str]:
        held = self._taken(destination)
        try:
            async with asyncio.timeout(self._total_seconds):
                return AttemptOutcome.DELIVERED, await held.link.publish(
                    cloud_event(outgoing, source=self._source)
                )
        # a defect in one broker's client must not end the notifier for all subscribers
        except Exception as error:  # noqa: BLE001
            return _meaning(error)
        finally:
            self._left(destination, held)

    def _taken(self, destination: Destination) -> _Held:
        # the last used stands last
        held = self._held.pop(destination, None) or self._made(destination)
        self._held[destination] = held
        if held.retirement is not None:
            held.retirement.cancel()
            held.retirement = None
        return held

    def _made(self, destination: Destination) -> _Held:
        if len(self._held) >= self._links_max:
            # those in use are bounded by the permits of their attempts
            idle = next((one for one, held in self._held.items() if not held.link.in_use), None)
            if idle is not None:
                self._retire(idle)
        return _Held(
            Link(lambda: self._connect(destination), connect_seconds=self._connect_seconds)
        )

    async def _connect(self, destination: Destination) -> Connection:
        url = URL(destination.url)
        broker = BY_SCHEME[url.scheme]
        return await broker.client().connect(broker.read(url), destination.login, self._dialler)

    def _left(self, destination: Destination, held: _Held) -> None:
        # it may have been retired, and made anew, while this one published
        if not held.link.in_use and self._held.get(destination) is held:
            loop = asyncio.get_running_loop()
            held.retirement = loop.call_later(self._idle_seconds, self._retire, destination)

    def _retire(self, destination: Destination) -> None:
        held = self._held.pop(destination)
        if held.retirement is not None:
            held.retirement.cancel()
        closing = asyncio.create_task(held.link.close(), name="broker link closing")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


def _meaning(error: Exception) -> tuple[AttemptOutcome, str]:
    """Return how an attempt ended that raised this, and the detail to record."""
    outcome, detail = AttemptOutcome.UNREACHABLE, ""
    match error:
        case PublishRefusedError(outcome=outcome, detail=detail):
            pass
        case ClientMissingError():
            _log.error("broker_client_missing", why=str(error))
            outcome, detail = AttemptOutcome.CLIENT_MISSING, str(error)
        case UrlFlawError():
            outcome, detail = AttemptOutcome.REFUSED, str(error)
        case ssl.SSLCertVerificationError():
            outcome, detail = AttemptOutcome.CERTIFICATE_NOT_TRUSTED, error.verify_message
        case ConnectionLostError():
            outcome, detail = outcome_of_failure(error), str(error)
        case OSError():
            outcome = outcome_of_failure(error)
        case _:
            _log.error("broker_client_failed", error=error)
    return outcome, detail


async def _closed(connection: Connection) -> None:
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await connection.close()
    # it is gone either way, and its client may say so with anything
    except Exception:  # noqa: BLE001, S110
        pass


def _now() -> float:
    return asyncio.get_running_loop().time()


class BrokerTargets:
    @property
    def schemes(self) -> Collection[str]:
        return BY_SCHEME.keys()

    def check(self, url: URL) -> CheckedTarget:
        broker = BY_SCHEME[url.scheme]
        shown, login = split_login(url)
        parts = broker.read(shown)
        try:
            broker.client().check(parts, login)
        except ClientMissingError as error:
            raise UrlFlawError(str(error)) from None
        better = next(scheme for scheme, one in broker.schemes.items() if one.tls)
        return CheckedTarget(shown, login, parts.port, parts.tls, better)

    def sender(
        self,
        *,
        allowed: Sequence[Network],
        source: str,
        connect_seconds: float,
        total_seconds: float,
    ) -> Links:
        return Links(
            Dialler(allowed),
            source=source,
            connect_seconds=connect_seconds,
            total_seconds=total_seconds,
        )


BROKER_TARGETS = BrokerTargets()
