"""Keep, put, drain and power losses in any order: each message once, and each acknowledged id resolves."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import hypothesis.strategies as st
import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.bodies.sealed_message import SealedMessage, seal_message
from statesvc.ingress.group_commit import put
from statesvc.spool.drainer import Drainer, ServerClock
from statesvc.spool.file_spool import FileSpool
from statesvc.spool.spool import SpoolBounds, SpooledMessage
from tests.statesvc.spool.conftest import Disk
from tests.world import postgres

BOUNDS = SpoolBounds(bytes_max=1_000_000, age_seconds_max=3600)
EXAMPLES = settings(
    max_examples=10,
    stateful_step_count=20,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


class Crash(Exception):  # noqa: N818 - of a process
    """The process ends here."""


def crashing(work: Callable[..., Awaitable[None]], *, is_done: bool) -> Any:
    """Return the work, whose process ends before or after it."""

    async def crash(*arguments: Any) -> None:
        if is_done:
            await work(*arguments)
        raise Crash

    return crash


class Pushes(RuleBasedStateMachine):
    """A carrier pushes some bodies again and again; the ingress loses its power now and then."""

    dsn: str
    keyring: Keyring

    @initialize()
    def start(self) -> None:
        self.runner = asyncio.Runner()
        self.folder = TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.disk = Disk(self.root)
        self.acknowledged: list[tuple[int, UUID]] = []
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for table in ("inbox", "receipt", "body", "message_alias", "spool"):
                connection.execute(f"DELETE FROM statesvc.{table}".encode())
        self.runner.run(self.open())

    async def open(self) -> None:
        self.spool = FileSpool(self.root, BOUNDS, sync=self.disk.sync)

    @rule(body=st.integers(0, 5))
    def push(self, body: int) -> None:
        """Push while the database answers in time."""
        self.runner.run(self.store(body))

    @rule(body=st.integers(0, 5), is_stored=st.booleans())
    def push_without_an_answer(self, body: int, *, is_stored: bool) -> None:
        """Push while the database answers too late, or not at all."""
        self.runner.run(self.keep(body, is_stored=is_stored))

    @rule()
    def drain(self) -> None:
        self.runner.run(self.drain_all())

    @rule(torn_bytes=st.integers(0, 40))
    def lose_power(self, torn_bytes: int) -> None:
        self.runner.run(self.spool.close())
        self.disk.lose_power(torn_bytes=torn_bytes)
        self.runner.run(self.open())

    @rule(step=st.sampled_from(["put", "settle"]), is_done=st.booleans())
    def lose_power_while_draining(self, step: str, *, is_done: bool) -> None:
        """Lose power before or after the statement that stores, or what follows its commit."""
        with suppress(Crash):
            self.runner.run(self.drain_all(step, is_done=is_done))
        self.lose_power(0)

    def teardown(self) -> None:
        if not hasattr(self, "runner"):
            return
        self.drain()
        self.runner.run(self.spool.close())
        self.runner.close()
        self.folder.cleanup()
        with psycopg.connect(self.dsn) as connection:
            stored = connection.execute("SELECT message_id FROM statesvc.body").fetchall()
            waiting = connection.execute("SELECT message_id FROM statesvc.inbox").fetchall()
            aliases: dict[UUID, UUID] = dict(
                connection.execute(
                    "SELECT message_id, kept_id FROM statesvc.message_alias"
                ).fetchall()
            )
        messages = {message_id for (message_id,) in stored}
        assert len(stored) == len(messages) == len(waiting)
        assert len(messages) == len({body for body, _ in self.acknowledged})
        resolved = {(body, aliases.get(one, one)) for body, one in self.acknowledged}
        assert {one for _, one in resolved} == messages
        assert len(resolved) == len(messages), "an id leads to the message of another body"

    async def store(self, body: int) -> None:
        async with await AsyncConnection.connect(self.dsn, autocommit=True) as connection:
            (stored,) = await put(connection, [self.sealed(body)])
        self.acknowledged.append((body, stored.message_id))

    async def keep(self, body: int, *, is_stored: bool) -> None:
        message = self.sealed(body)
        if is_stored:
            async with await AsyncConnection.connect(self.dsn, autocommit=True) as connection:
                await put(connection, [message])
        kept = await self.spool.keep(SpooledMessage(message, datetime.now(UTC)))
        self.acknowledged.append((body, kept))

    async def drain_all(self, crash: str = "", *, is_done: bool = False) -> None:
        drainer = Drainer(self.spool, ServerClock(), dsn=self.dsn)
        if crash == "put":
            drainer._put = crashing(drainer._put, is_done=is_done)  # type: ignore[method-assign]  # noqa: SLF001
        if crash == "settle":
            for source in await self.spool.sources():
                source.settle = crashing(source.settle, is_done=is_done)  # type: ignore[method-assign]
        try:
            await drainer.drain_all()
        finally:
            await drainer.disconnect()

    def sealed(self, body: int) -> SealedMessage:
        return seal_message(self.keyring, "acme", str(body).encode(), "{}")


@pytest.fixture
def dsn(server: postgres.Server) -> Iterator[str]:
    name = postgres.create_database(server, postgres.TEMPLATE)
    try:
        yield server.on(name).superuser_dsn
    finally:
        postgres.drop_database(server, name)


def test_in_any_order_each_message_is_stored_once(dsn: str, keyring: Keyring) -> None:
    machine = type("Machine", (Pushes,), {"dsn": dsn, "keyring": keyring})
    run_state_machine_as_test(machine, settings=EXAMPLES)
