"""A served stream on a real database, with a real listener, and a log that grows as the worker and
the sealer make it grow.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application

from events.entry.kinds import rfc3339
from statesvc.addons.stream import tickets as ticket_operations
from statesvc.addons.stream.routes import stream_route
from statesvc.addons.stream.streams import StreamLimits, Streams
from statesvc.addons.stream.tickets import Tickets
from statesvc.api import transition_operations
from statesvc.api.call_limits import CallLimits
from statesvc.api.served_context import served_context
from statesvc.database.pool import PoolLimits, make_pool
from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.wakeup import SEALED, notify
from statesvc.http.app import build_app
from statesvc.http.keys.api_keys import Keys
from statesvc.http.keys.key_store import Scope, create_key
from statesvc.http.keys.signed_token import TokenSigner
from statesvc.http.operation import routes_of
from statesvc.log.history import History
from statesvc.log.json_compression import decompress_json
from statesvc.telemetry.metrics import Telemetry
from tests.addons.stream.event_source import EventSource, event_source
from tests.world.log_builder import WAY, LogBuilder, log_builder, scan

LIMITS = PoolLimits(
    connections_max=4,
    acquire_seconds=2,
    statement_seconds=5,
    lock_seconds=5,
    idle_in_transaction_seconds=5,
)
STREAM_LIMITS = StreamLimits(clients_max=50, clients_per_key_max=40, send_seconds=5)


@dataclass
class Stage:
    """One process's streams, and the log that they are of."""

    log: LogBuilder
    streams: Streams
    client: TestClient[Any, Application]
    telemetry: Telemetry
    key: str
    key_id: str

    def source(
        self, path: str = "/v1/stream", **headers: str
    ) -> AbstractAsyncContextManager[EventSource]:
        return event_source(self.client, path, headers=self.headers(**headers))

    def headers(self, **more: str) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.key}",
            **{name.replace("_", "-"): value for name, value in more.items()},
        }

    async def publish(self) -> None:
        """Seal what is committed, and notify as the sealer does."""
        await self.log.seal()
        await notify(self.log.connection, SEALED)

    async def move(self, parcels: Sequence[str], *, carrier_id: str = "ups") -> None:
        """Move each parcel its whole way in one transaction: five transitions a parcel."""
        async with self.log.connection.transaction():
            for place, status in enumerate(WAY):
                scans = (scan(number, place, status) for number in parcels)
                await self.log.append(*scans, carrier_id=carrier_id, commit=False)

    async def publish_moves(self, *parcels: str) -> None:
        await self.move(parcels)
        await self.publish()

    async def truth(self) -> list[dict[str, Any]]:
        """Return what the stream of the whole log must say, by another query."""
        rows = await self.log.rows(
            "SELECT s.first_index + t.ordinal, e.carrier_id, t.from_status, t.to_status,"
            " e.occurred_at, t.sequence, t.recorded_at, e.canonical FROM statesvc.transition t JOIN"
            " statesvc.sealed_batch s USING (batch_id) JOIN statesvc.event e ON e.shipment_id ="
            " t.shipment_id AND e.version = t.sequence ORDER BY 1"
        )
        return [
            {
                "carrier_id": carrier_id,
                "tracking_number": orjson.loads(decompress_json(stored))["tracking_number"],
                "from": before,
                "to": after,
                "occurred_at": rfc3339(occurred_at),
                "sequence": sequence,
                "log_index": index,
                "recorded_at": rfc3339(recorded_at),
            }
            for index, carrier_id, before, after, occurred_at, sequence, recorded_at, stored in rows
        ]

    def counted(self, line: str) -> float:
        """Return a metric's value by its name and labels; 0 for one that was never recorded."""
        found = [
            each.rpartition(" ")[2]
            for each in self.telemetry.exposition().decode().splitlines()
            if each.startswith(line + " ")
        ]
        return float(found[0]) if found else 0.0

    async def until_counted(self, line: str, value: float) -> None:
        async with asyncio.timeout(10):
            while self.counted(line) != value:  # noqa: ASYNC110 - another task counts
                await asyncio.sleep(0.01)


StageMaker = Callable[..., AbstractAsyncContextManager[Stage]]


@pytest.fixture
def staged(database: Any, call_limits: CallLimits, remembered_seconds: float) -> StageMaker:
    """Make the stage; `limits` and `pressure` as `Streams` has them, `pool` wraps the pool."""

    @asynccontextmanager
    async def make(
        *,
        limits: StreamLimits = STREAM_LIMITS,
        pressure: Callable[[], bool] = lambda: False,
        pool: Callable[[Any], Any] = lambda pool: pool,
    ) -> AsyncIterator[Stage]:
        opened = make_pool(database.service_dsn, name="sse-test", limits=LIMITS)
        await opened.open()
        telemetry, listener = Telemetry(), Listener(database.service_dsn, [SEALED])
        await listener.start()
        keys = Keys(opened, remembered_seconds=remembered_seconds)
        streams = Streams(
            pool(opened),
            archive=History(None),
            keys=keys,
            listener=listener,
            woken=listener.event(SEALED),
            telemetry=telemetry,
            limits=limits,
            pressure=pressure,
        )
        running = asyncio.create_task(streams.run())
        async with log_builder(database) as log:
            key_id, key = await create_key(
                log.connection, name="test", scopes=[Scope.READ], created_by="test"
            )
            tickets = Tickets(TokenSigner(log.keyring.token_key))
            nothing: Any = None
            context = served_context(
                pool=opened,
                keyring=log.keyring,
                waker=nothing,
                readings=nothing,
                limits=call_limits,
            )
            served = [
                *routes_of(ticket_operations.OPERATIONS, context),
                *routes_of(transition_operations.OPERATIONS, context),
                stream_route(streams, tickets),
            ]
            app = build_app(served, keys=keys)
            async with TestClient(TestServer(app)) as client:
                yield Stage(log, streams, client, telemetry, key, key_id)
                streams.stop()
        await asyncio.wait_for(running, 5)
        await listener.stop()
        await opened.close()
        telemetry.close()

    return make


@pytest.fixture
async def stage(staged: StageMaker) -> AsyncIterator[Stage]:
    async with staged() as made:
        yield made
