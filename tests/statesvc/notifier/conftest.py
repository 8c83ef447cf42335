"""A subscriber on loopback, subscriptions, changes to notify of, and notifiers."""

import asyncio
import contextlib
import hashlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from freezegun import freeze_time
from psycopg import AsyncConnection
from standardwebhooks.webhooks import Webhook

from events.crypto.keyring import Keyring
from events.crypto.sealing import MasterKeys, SealingKey
from statesvc.append.outbox import OutboxChange
from statesvc.database.keyring_store import load_keyring
from statesvc.database.pool import Pool
from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.wakeup import OUTBOX
from statesvc.delivery.targets import Targets
from statesvc.notifier.context import NotifierContext
from statesvc.notifier.notifier_loop import Notifier, NotifierLimits
from statesvc.subscriptions import subscription_store as store
from statesvc.subscriptions.subscription_secrets import Secret
from statesvc.telemetry.metrics import Telemetry
from tests.world.fan_out import notify_of
from tests.world.waiting import until

TRIES = """
    SELECT t.outcome, t.status_code, t.number, t.started_at, a.batch_id, a.ordinal FROM statesvc.attempt a
    CROSS JOIN LATERAL statesvc.tries_of(a.sequence, a.number, a.outcome, a.status_code, a.duration_ms, a.started_at, a.tries) t
    WHERE t.sequence = a.sequence
    UNION ALL
    SELECT o.outcome, o.status_code, o.number, o.started_at, NULL, NULL FROM statesvc.open_attempt o
    ORDER BY 4, 3
"""
PROGRAM = Path(__file__).with_name("notifier_process.py")
LOOPBACK = (ip_network("127.0.0.0/8"),)


@dataclass(frozen=True)
class Received:
    """One request as the subscriber got it."""

    webhook_id: str
    headers: dict[str, str]
    body: bytes
    path: str

    @property
    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = orjson.loads(self.body)["data"]
        return data

    def verify(self, secret: Secret) -> None:
        # at the time that it says: the database's clock may have been moved
        with freeze_time(datetime.fromtimestamp(int(self.headers["webhook-timestamp"]), UTC)):
            Webhook(secret.shown).verify(self.body, self.headers)


@dataclass
class Receiver:
    """A subscriber that answers as set: `answer` decides for each request, 204 unless set."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    answer: Callable[[Received], Awaitable[web.StreamResponse]] | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        got = Received(
            request.headers["webhook-id"], dict(request.headers), await request.read(), request.path
        )
        self.received.append(got)
        return web.Response(status=204) if self.answer is None else await self.answer(got)

    def hold(self) -> asyncio.Event:
        """Answer nothing until the event is set."""
        released = asyncio.Event()

        async def answer(_got: Received) -> web.StreamResponse:
            await released.wait()
            return web.Response(status=204)

        self.answer = answer
        return released

    def statuses(self, *statuses: int, **headers: str) -> None:
        """Answer with these in turn, and these headers; with the last one for ever."""
        left = list(statuses)

        async def answer(_got: Received) -> web.StreamResponse:
            status = left.pop(0) if len(left) > 1 else left[0]
            return web.Response(status=status, text="said the subscriber", headers=headers)

        self.answer = answer


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/{tail:.*}", receiver.handle)
    server = TestServer(app, host="127.0.0.1")
    await server.start_server(shutdown_timeout=0.1)
    receiver.url = f"http://127.0.0.1:{server.port}/hook"
    yield receiver
    await server.close()


@pytest.fixture
def master_key() -> bytes:
    return os.urandom(32)


@pytest.fixture
async def keyring(service: AsyncConnection[Any], master_key: bytes) -> Keyring:
    return await load_keyring(service, MasterKeys([master_key]))


@dataclass
class World:
    """Tools of a test on the database."""

    database: Any
    connection: AsyncConnection[Any]
    keyring: Keyring
    pool: Pool
    receiver: Receiver
    secrets: dict[UUID, Secret] = field(default_factory=dict)

    async def subscribe(self, **filters: Any) -> UUID:
        wish = store.SubscriptionRequest(**{"url": self.receiver.url, **filters})
        subscription_id, secret = await store.create(
            self.connection, self.keyring, wish, actor="key:test", owner="bootstrap"
        )
        self.secrets[subscription_id] = secret
        return subscription_id

    async def shipment(self, *, erased: bool = False) -> tuple[UUID, SealingKey]:
        shipment_id, key = uuid4(), SealingKey.fresh()
        await self.connection.execute(
            "INSERT INTO statesvc.stream VALUES (%s, 'ups', %s, '', 0, %s, statesvc.clock(),"
            " statesvc.clock(), %s, %s)",
            (
                shipment_id,
                shipment_id.hex,
                bytes(32),
                None if erased else self.keyring.seal_shipment_key(key, shipment_id),
                datetime.now(UTC) if erased else None,
            ),
        )
        return shipment_id, key

    def changes(self, shipment_id: UUID, *sequences: int) -> list[OutboxChange]:
        return [
            OutboxChange(
                shipment_id=shipment_id,
                sequence=sequence,
                type="shipment.status_changed",
                carrier_id="ups",
                number=shipment_id.hex,
                tracking_number="1ZINVENTED",
                from_status="unknown",
                to_status="in_transit",
                recorded_at=datetime.now(UTC),
                occurred_at=datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=sequence),
                leaf_hash=hashlib.sha256(f"{shipment_id} {sequence}".encode()).digest(),
            )
            for sequence in sequences
        ]

    async def notify(self, shipment_id: UUID, *sequences: int) -> int:
        return await notify_of(self.connection, self.changes(shipment_id, *sequences))

    async def notified_shipment(self, *sequences: int) -> UUID:
        """Make a subscription and a shipment, and notify of these changes."""
        await self.subscribe()
        shipment_id, _ = await self.shipment()
        if sequences:
            await self.notify(shipment_id, *sequences)
        return shipment_id

    async def deliver(self) -> None:
        """Run a notifier until something was received and nothing is under way."""
        async with self.notifier() as notifier:
            await until(lambda: self.receiver.received and notifier.in_flight == 0)

    async def killed_at_first_delivery(self, master_key: bytes) -> None:
        """Run a notifier of its own process, killed while its first delivery is on its way."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(PROGRAM), self.database.service_dsn, master_key.hex()),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

        async def kill_the_sender(_got: Received) -> web.StreamResponse:
            if process.returncode is None:
                process.kill()
                await process.wait()
            return web.Response()

        self.receiver.answer = kill_the_sender
        assert await process.wait() == -signal.SIGKILL
        self.receiver.answer = None

    async def rows(self, query: str, *parameters: Any) -> list[Any]:
        return await (await self.connection.execute(query, parameters)).fetchall()

    async def outbox(self) -> list[Any]:
        return await self.rows(
            "SELECT shipment_id, sequence, attempts, token IS NOT NULL FROM statesvc.outbox ORDER"
            " BY 1, 2"
        )

    async def attempts(self) -> list[Any]:
        """Return all tries, those in entries and those at what has not ended, in the order in
        which they were recorded.
        """
        return [tuple(row[:3]) for row in await self.rows(TRIES)]

    async def ends(self) -> list[Any]:
        return await self.rows(
            "SELECT outcome, number FROM statesvc.attempt ORDER BY batch_id, ordinal"
        )

    async def wake(self) -> None:
        await self.connection.execute("SELECT pg_notify(%s, '')", (OUTBOX,))

    async def advance(self, seconds: float) -> None:
        """Move the database's clock and wake the notifiers."""
        await self.database.clock.advance(seconds)
        await self.wake()

    @contextlib.asynccontextmanager
    async def notifier(self, *, grace_seconds: float = 5, **limits: Any) -> AsyncIterator[Notifier]:
        """Run a notifier, stopped at the end."""
        listener, telemetry = Listener(self.database.service_dsn, [OUTBOX]), Telemetry()
        await listener.start()
        # each connect wakes the notifier: a late one would be a claim that the test did not ask for
        await listener.wait_up(10)
        async with Targets(
            allowed=LOOPBACK, total_seconds=limits.pop("total_seconds", 15)
        ) as targets:
            around = NotifierContext(
                pool=self.pool,
                keyring=self.keyring,
                listener=listener,
                telemetry=telemetry,
                targets=targets,
            )
            notifier = Notifier(
                around,
                worker="notifier-1",
                limits=NotifierLimits(grace_seconds=grace_seconds, **limits),
            )
            running = asyncio.create_task(notifier.run())
            try:
                yield notifier
            finally:
                notifier.stop()
                await running
                await listener.stop()
                telemetry.close()


@pytest.fixture
async def world(
    database: Any,
    service: AsyncConnection[Any],
    keyring: Keyring,
    pool: Pool,
    receiver: Receiver,
) -> World:
    return World(database, service, keyring, pool, receiver)
