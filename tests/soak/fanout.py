"""Setting of the stories of the fan-out: subscriptions, changes at a steady rate, and receivers
that behave as in the simulation.
"""

import asyncio
import base64
import hashlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID, uuid4

from aiohttp import web
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.crypto.sealing import MasterKeys, SealingKey
from statesvc.append.outbox import OutboxChange
from statesvc.database.keyring_store import load_keyring
from statesvc.database.wakeups.wakeup import OUTBOX
from statesvc.subscriptions import subscription_store as store
from statesvc.subscriptions.subscription_secrets import Secret
from tests.acceptance.processes import MASTER_KEY
from tests.simulation.receivers import Behaviour
from tests.world.fan_out import notify_of

TELL_SECONDS: Final = 0.1
"""Changes are written in groups, as a worker's batches do."""


@dataclass(frozen=True, slots=True)
class Started:
    """A request that began: seconds since the story did, and how many were under way with it."""

    at: float
    in_flight: int


@dataclass
class Receiver:
    """Behaves as it is told, in real time. Times are seconds since `began`."""

    behaviour: Behaviour
    url: str = ""
    began: float = field(default_factory=time.monotonic)
    in_flight: int = 0
    started: list[Started] = field(default_factory=list)
    taken_at: list[float] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    """webhook-ids that were answered 2xx, repeats included."""
    statuses: Counter[int | None] = field(default_factory=Counter)

    @property
    def peak(self) -> int:
        return max((start.in_flight for start in self.started), default=0)

    def throughput(self, since: float, until: float) -> float:
        return sum(since <= at < until for at in self.taken_at) / (until - since)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        now = time.monotonic() - self.began
        self.in_flight += 1
        self.started.append(Started(now, self.in_flight))
        try:
            reply = self.behaviour.reply(now, self.in_flight)
            await asyncio.sleep(reply.after_seconds)
        finally:
            self.in_flight -= 1
        self.statuses[reply.status] += 1
        if reply.status is None:
            return web.Response(status=504)
        if reply.status < 300:
            self.taken_at.append(time.monotonic() - self.began)
            self.taken.append(request.headers["webhook-id"])
        headers = (
            {}
            if reply.retry_after_seconds is None
            else {"Retry-After": f"{reply.retry_after_seconds:.0f}"}
        )
        return web.Response(status=reply.status, headers=headers)


@asynccontextmanager
async def listening(receivers: Sequence[Receiver]) -> AsyncIterator[None]:
    """Listen with each receiver at a path of its own."""
    application = web.Application()
    for place, receiver in enumerate(receivers):
        application.router.add_post(f"/{place}", receiver.handle)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        for place, receiver in enumerate(receivers):
            receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/{place}"
        yield
    finally:
        await runner.cleanup()


class Changes:
    """Subscribes, and writes changes as a worker does; asks the database as the service."""

    def __init__(self, connection: AsyncConnection[Any], keyring: Keyring) -> None:
        self._connection = connection
        self._keyring = keyring
        self._shipments: list[UUID] = []

    async def subscribe(
        self, url: str, *, chosen: tuple[UUID, Secret] | None = None, **wish: Any
    ) -> UUID:
        request = store.SubscriptionRequest(url=url, **wish)
        made = await store.create(
            self._connection,
            self._keyring,
            request,
            actor="key:soak",
            owner="bootstrap",
            chosen=chosen,
        )
        subscription_id, _ = made
        return subscription_id

    async def unsubscribe(self, subscription_id: UUID) -> None:
        await store.change_state(self._connection, subscription_id, "delete", actor="key:soak")

    async def make_shipments(self, count: int) -> list[UUID]:
        made = [uuid4() for _ in range(count)]
        rows = [
            (one, one.hex, bytes(32), self._keyring.seal_shipment_key(SealingKey.fresh(), one))
            for one in made
        ]
        async with self._connection.transaction(), self._connection.cursor() as cursor:
            await cursor.executemany(
                "INSERT INTO statesvc.stream VALUES (%s, 'ups', %s, '', 0, %s, statesvc.clock(),"
                " statesvc.clock(), %s, NULL)",
                rows,
            )
        return made

    async def tell(self, changes: Sequence[tuple[UUID, int]]) -> int:
        """Write one change for each (shipment, sequence), to all who subscribed.

        Return how many notifications that made.
        """
        told = [
            OutboxChange(
                shipment_id=shipment_id,
                sequence=sequence,
                type="shipment.status_changed",
                carrier_id="ups",
                number=shipment_id.hex,
                tracking_number=shipment_id.hex,
                from_status="picked_up",
                to_status="in_transit",
                recorded_at=datetime.now(UTC),
                occurred_at=datetime.now(UTC),
                leaf_hash=hashlib.sha256(f"{shipment_id} {sequence}".encode()).digest(),
            )
            for shipment_id, sequence in changes
        ]
        written = await notify_of(self._connection, told)
        await self._connection.execute("SELECT pg_notify(%s, '')", (OUTBOX,))
        return written

    async def tell_steadily(self, shipments: Sequence[UUID], *, per_second: float) -> None:
        """Write one change of each shipment."""
        group = max(1, round(per_second * TELL_SECONDS))
        due = time.monotonic()
        for place in range(0, len(shipments), group):
            await self.tell([(one, 1) for one in shipments[place : place + group]])
            due += group / per_second
            await asyncio.sleep(due - time.monotonic())

    async def rows(self, query: str, *parameters: Any) -> list[Any]:
        return await (await self._connection.execute(query.encode(), parameters or None)).fetchall()


@asynccontextmanager
async def changes(service_dsn: str) -> AsyncIterator[Changes]:
    async with await AsyncConnection.connect(service_dsn, autocommit=True) as connection:
        yield Changes(
            connection, await load_keyring(connection, MasterKeys([base64.b64decode(MASTER_KEY)]))
        )
