"""Connections with our settings, given up by the client when the server stops answering.

A server's own time limits end slow statements. They do not help if no answer comes back at all: a
stopped backend, or a network device that swallows packets. Cancelling a psycopg call waits for the
same socket. So the client keeps a deadline for each answer, and shuts the socket down at its end:
the end of the stream wakes the waiting call.
"""

import asyncio
import os
import select
import socket
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Self, TypeVar

import psycopg
import structlog
from psycopg import AsyncConnection
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict

from statesvc.database.password_command import password_command
from statesvc.database.sql_errors import (
    ConnectionCause,
    ServerSilentError,
    connection_cause,
    is_of_server,
)

# libpq parameters: a half-open socket is noticed within about 15 seconds.
KEEPALIVE: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "keepalives": 1,
        "keepalives_idle": 5,
        "keepalives_interval": 3,
        "keepalives_count": 3,
        # for data that was sent and is not acknowledged, where keepalives are not sent
        "tcp_user_timeout": 15_000,
    }
)
CONNECT_TIMEOUT_SECONDS: Final = 5
# Time that a cancelled call may take to end.
CANCEL_SECONDS: Final = 1.0
_INTERVAL_SECONDS: Final = 0.1
# Time for an answer that is there and was not read yet: this process was stopped or busy, not the
# server.
_UNREAD_SECONDS: Final = 0.1

T = TypeVar("T")
_log = structlog.get_logger()


class ServiceConnection(AsyncConnection[Any]):
    """`answer_seconds`: the deadline of each answer; None: none.

    `fault`: why it must not be used again.
    """

    # psycopg's, passed on
    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **options)
        self.answer_seconds: float | None = None
        self.fault: psycopg.Error | None = None
        self.opened_at = time.monotonic()
        self._deadline: asyncio.TimerHandle | None = None

    @classmethod
    # psycopg's, passed on
    async def connect(cls, conninfo: str = "", **options: Any) -> Self:  # noqa: ANN401
        """Connect; the password is asked for where the address has none."""
        command = password_command()
        password = None if command is None else await command.password(conninfo)
        if command is None or password is None:
            return await super().connect(conninfo, **options)
        try:
            return await super().connect(conninfo, password=password, **options)
        except psycopg.OperationalError as error:
            # a token that has ended: the next try asks for a new one
            if connection_cause(error) is ConnectionCause.AUTH:
                command.forget()
            raise

    async def wait(
        self,
        gen: PQGen[T],
        interval: float = _INTERVAL_SECONDS,
        timeout: float | None = None,  # noqa: ASYNC109 - psycopg's
    ) -> T:
        """Wait for the server; every exchange with it goes through here.

        Raises ServerSilentError.
        """
        # not where psycopg itself bounds the wait, as for notifications
        if timeout is None and self.answer_seconds is not None:
            self._hang_up_within(self.answer_seconds)
        try:
            return await super().wait(gen, interval, timeout)
        except psycopg.Error as error:
            # the cause that we know, in place of the lost connection that it led to
            if self.fault is not None:
                raise self.fault from error
            # the connection may still work: what failed concerns every connection to this server
            if is_of_server(error):
                self.fault = error
            raise
        finally:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    # psycopg's
    async def cancel_safe(self, *, timeout: float = CANCEL_SECONDS) -> None:  # noqa: ASYNC109
        """Cancel when a waiting task is cancelled; a server that does not end the
        statement loses the connection.
        """
        # the same socket: a silent server would also be silent about the cancellation
        self._hang_up_within(CANCEL_SECONDS)
        await super().cancel_safe(timeout=min(timeout, CANCEL_SECONDS))

    def _hang_up_within(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._hang_up)

    def _hang_up(self) -> None:
        self._deadline = None
        if self.closed:
            return
        # once more: a process that was stopped finds its timers due before it has read the answer
        if _has_unread(self.fileno()):
            self._hang_up_within(_UNREAD_SECONDS)
            return
        self.fault = ServerSilentError()
        _log.warning("database_silent", error=self.fault)
        # the descriptor stays libpq's own; the end of the stream wakes what waits on it
        with socket.socket(fileno=os.dup(self.fileno())) as wire:
            try:
                wire.shutdown(socket.SHUT_RDWR)
            except OSError:
                _log.info("database_socket_gone")


# Pause between tries within an attempt; the pool itself would retry after one second, then two.
_AGAIN_SECONDS: Final = (0.05, 0.1, 0.2, *[0.4] * 6)


class RetryingConnection(ServiceConnection):
    """Connection of a pool, tried again at once: a server that takes another's place is away for
    less than the second that a pool waits.
    """

    @classmethod
    # psycopg's, passed on
    async def connect(cls, conninfo: str = "", **options: Any) -> Self:  # noqa: ANN401
        """Connect; `failed` is called with the error of each try. Raises OperationalError."""
        failed: Callable[[psycopg.Error], None] | None = options.pop("failed", None)
        for pause in _AGAIN_SECONDS:
            try:
                return await super().connect(conninfo, **options)
            except psycopg.OperationalError as error:
                if failed is not None:
                    failed(error)
            await asyncio.sleep(pause)
        return await super().connect(conninfo, **options)


def parameters(dsn: str, application_name: str, *, writes: bool) -> dict[str, Any]:
    """Return libpq's parameters; among several servers the default is a writable one."""
    given = conninfo_to_dict(dsn)
    wants = (
        # of several hosts libpq then skips standbys, also right after a failover
        {"target_session_attrs": "read-write"}
        if writes and "target_session_attrs" not in given
        else {}
    )
    return {
        "application_name": application_name,
        # in the login: answers to the first statement already depend on it
        "client_encoding": "UTF8",
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        **wants,
        **KEEPALIVE,
    }


def encoding_fault(connection: AsyncConnection[Any]) -> str | None:
    """Return the reason why this database cannot hold carriers' texts; None: it can."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding in {"UTF8", None}:
        return None
    return (
        f"the database {connection.info.dbname} has the encoding {encoding}, and statesvc needs"
        " UTF8: CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
    )


def names_several_hosts(dsn: str) -> bool:
    """Return whether the DSN leaves it to libpq which of several servers to take."""
    given = conninfo_to_dict(dsn)
    return any("," in str(given.get(name) or "") for name in ("host", "hostaddr"))


def _has_unread(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
