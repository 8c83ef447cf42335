"""A served API on a real database, and a way to have carriers say things through the
worker's own transaction.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application
from multidict import CIMultiDictProxy
from psycopg import AsyncConnection

from events.carriers import CARRIERS
from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from events.event import EventPlace, PrintedTime, Raw, Reading
from events.vocabulary import Kind, Status, TimePrecision, TzSource
from statesvc.addons.console.routes import served_pages
from statesvc.api.call_limits import CallLimits
from statesvc.api.computing import Computing
from statesvc.api.operation_context import Context, no_targets
from statesvc.api.personal_reads import PersonalReads
from statesvc.api.routes import routes
from statesvc.api.served_context import served_context
from statesvc.api.submission.routes import routes as submission_routes
from statesvc.database.keyring_store import MasterKeyError, load_keyring
from statesvc.database.pool import Connections, PoolLimits, ReadablePool, make_pool
from statesvc.delivery.addresses import Network
from statesvc.delivery.targets import Targets
from statesvc.http.app import build_app
from statesvc.http.keys.api_keys import REMEMBERED_SECONDS, Keys
from statesvc.http.keys.key_store import Scope, create_key
from statesvc.http.keys.signed_token import TokenSigner
from statesvc.http.served_calls import ServedCalls
from statesvc.log.checkpoint_store import FolderCheckpointStore
from statesvc.log.history import History
from statesvc.log.tombstones import Tombstones
from tests.contract import Contract, contract_of
from tests.world.database import Database
from tests.world.log_builder import MASTER, MORNING, LogBuilder
from tests.world.worker_harness import LIMITS

Statement = Callable[..., Reading]


def _scan(
    number: str,
    status: Status | None,
    *,
    minutes: int = 0,
    code: str | None = "X1",
    day_only: bool = False,
    description: str | None = None,
    **fields: Any,
) -> Reading:
    """Build a scan `minutes` after the morning."""
    at = MORNING + timedelta(minutes=minutes)
    raw_type = fields.pop("type", "T")
    fields.setdefault("kind", Kind.SCAN)
    fields.setdefault(
        "place", EventPlace(city="Springfield", region="IL", postal_code="62701", country="US")
    )
    return Reading(
        tracking_number=number,
        status=status,
        raw=Raw(type=raw_type, code=code),
        time=PrintedTime(
            printed=at.strftime("%Y-%m-%d" if day_only else "%Y-%m-%d %H:%M"),
            instant=at,
            tz_source=TzSource.EXPLICIT,
            precision=TimePrecision.DAY if day_only else TimePrecision.SECOND,
            identity=at.strftime("%Y%m%d" if day_only else "%Y%m%dT%H%M"),
        ),
        description=description,
        **fields,
    )


class Carriers(LogBuilder):
    """Has carriers push messages, and applies them as a worker would."""

    async def push(self, *readings: Reading, carrier_id: str = "ups") -> UUID:
        return await self.append(*readings, carrier_id=carrier_id, received_at=datetime.now(UTC))

    async def execute(self, query: str, parameters: Sequence[Any] = ()) -> None:
        await self.connection.execute(query.encode(), parameters)


@dataclass
class Reply:
    status: int
    headers: CIMultiDictProxy[str]
    body: Any


@dataclass
class Api:
    """Calls the API with a key of the given scopes."""

    client: TestClient[Any, Application]
    connection: AsyncConnection[Any]
    carriers: Carriers
    keyring: Keyring
    woken: list[str]
    contract: Contract
    readings: PersonalReads
    _keys: dict[str, str] = field(default_factory=dict)
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def key(self, scopes: str) -> str:
        async with self._making:
            if scopes not in self._keys:
                _, self._keys[scopes] = await create_key(
                    self.connection,
                    name="test",
                    scopes=map(Scope, scopes.split()),
                    created_by="test",
                )
        return self._keys[scopes]

    async def call(
        self,
        method: str,
        path: str,
        *,
        scopes: str = "read",
        key: str | None = None,
        headers: dict[str, str] | None = None,
        **arguments: Any,
    ) -> Reply:
        authorization = {"Authorization": f"Bearer {key or await self.key(scopes)}"}
        async with self.client.request(
            method, path, headers=authorization | (headers or {}), **arguments
        ) as response:
            body: Any = await response.read() or None
            if body and response.content_type.endswith("json"):
                body = json.loads(body)
            elif body and response.content_type.startswith("text/"):
                body = body.decode()
            self.contract.check(
                method, response.url.raw_path, response.status, response.content_type, body
            )
            return Reply(response.status, response.headers, body)

    async def rows(self, query: Any, parameters: Any = None) -> list[Any]:
        """Return the rows of a query, as the service's role."""
        return await (await self.connection.execute(query, parameters)).fetchall()

    async def get(self, path: str, *, scopes: str = "read", **arguments: Any) -> Reply:
        return await self.call("GET", path, scopes=scopes, **arguments)

    async def pages(self, path: str, *, scopes: str = "read", **query: Any) -> list[list[Any]]:
        pages, cursor = [], None
        while True:
            reply = await self.get(
                path, scopes=scopes, params=query | ({"cursor": cursor} if cursor else {})
            )
            assert reply.status == 200, reply.body
            pages.append(reply.body["items"])
            cursor = reply.body["next_cursor"]
            assert ("Link" in reply.headers) == (cursor is not None)
            if cursor is None:
                return pages


class Waker:
    def __init__(self) -> None:
        self.woken: list[str] = []

    def wake(self, channel: str) -> None:
        self.woken.append(channel)


async def no_computing() -> Computing:
    raise NotImplementedError("these calls compute nothing")


def context_of(pool: Connections, *, carriers: Mapping[str, Carrier] = CARRIERS) -> Context:
    """Return what operations work with that need no keys."""

    async def keyring() -> Keyring:
        raise MasterKeyError("no master key is at hand")

    return Context(
        pool=pool,
        waker=Waker(),
        readings=PersonalReads(pool),
        archive=None,
        keyring=keyring,
        carriers=lambda: carriers,
        backup_days=7,
        tombstones=Tombstones,
        log_archive=lambda: History(None),
        targets=no_targets,
        allowed=(),
        computing=no_computing,
    )


@pytest.fixture
def known_carriers() -> Mapping[str, Carrier]:
    """Return the carriers of the API; a module of tests may know others."""
    return CARRIERS


@pytest.fixture
def call_limits() -> CallLimits:
    """Return the limits of a call; a test that asks for more than one call can read has smaller
    ones.
    """
    return CallLimits()


@pytest.fixture
def remembered_seconds() -> float:
    """Return the time for which a key is remembered; a test whose key ends remembers none."""
    return REMEMBERED_SECONDS


@pytest.fixture
def pool_limits() -> PoolLimits:
    """Return the limits of the connections that answer."""
    return LIMITS


@pytest.fixture
def subscriber_networks() -> Sequence[Network]:
    """Return the networks besides the internet where subscribers of the API may live."""
    return ()


@pytest.fixture
async def api(
    *,
    database: Database,
    tmp_path: Path,
    known_carriers: Mapping[str, Carrier],
    call_limits: CallLimits,
    remembered_seconds: float,
    pool_limits: PoolLimits,
    subscriber_networks: Sequence[Network],
) -> AsyncIterator[Api]:
    pool = make_pool(database.service_dsn, name="api-test", limits=pool_limits)
    readers = make_pool(
        database.service_dsn,
        name="api-test reader",
        limits=replace(LIMITS, connections_min=0),
        writes=False,
    )
    await pool.open()
    waker = Waker()
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        await connection.execute("SET timezone = 'UTC'")
        keyring = await load_keyring(connection, MASTER)
        readings = PersonalReads(pool)
        targets = Targets(allowed=subscriber_networks, total_seconds=2)
        context = served_context(
            pool=pool,
            keyring=keyring,
            waker=waker,
            readings=readings,
            archive=tmp_path / "archive",
            backup_days=7,
            tombstones=Tombstones([(FolderCheckpointStore(tmp_path), "tombstones")]),
            targets=targets,
            allowed=subscriber_networks,
            carriers=known_carriers,
            limits=call_limits,
        )
        submission = submission_routes(
            pool=pool, keyring=keyring, waker=waker, writer="api-1", archive=History(None)
        )
        served = [*routes(context), *submission]
        keys = Keys(pool, remembered_seconds=remembered_seconds)
        readable = ReadablePool(pool, readers)
        pages = served_pages(
            ServedCalls(
                calls=served,
                pool=pool,
                readable=readable,
                keyring=keyring,
                keys=keys,
                readable_keys=Keys(readable, remembered_seconds=remembered_seconds),
                signer=TokenSigner(keyring.token_key),
            )
        )
        app = build_app([*served, *pages], keys=keys)
        async with readers, targets, TestClient(TestServer(app)) as client:
            yield Api(
                client,
                connection,
                Carriers(connection, keyring),
                keyring,
                waker.woken,
                contract_of(served),
                readings,
            )
    await pool.close()


@pytest.fixture
def scan() -> Statement:
    """Return `scan(number, status, minutes=..., ...)`: a carrier's statement."""
    return _scan
