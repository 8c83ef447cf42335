"""A worker's context on a real database, and an invented carrier whose pushes say
exactly what a test wants.
"""

import asyncio
import io
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import structlog
from psycopg import AsyncConnection

from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Normalized, PrintedTime, Raw, Reading, Rejection
from events.identity.ids import shipment_id
from events.spelling import normalize_number
from events.vocabulary import Kind, Reason, Status, TimePrecision, TzSource
from statesvc.bodies.sealed_message import seal_message
from statesvc.database.keyring_store import load_keyring
from statesvc.database.pool import Pool, PoolLimits, make_pool
from statesvc.database.wakeups.listener import Listener
from statesvc.database.wakeups.wakeup import INBOX, INBOX_NOW, READY_NOW
from statesvc.ingress.group_commit import put
from statesvc.log.json_compression import decompress_json
from statesvc.queue.claim import ClaimRequest, Message, claim
from statesvc.telemetry.logs import pipeline
from statesvc.telemetry.metrics import Telemetry
from statesvc.worker.batch import process
from statesvc.worker.batch_context import BatchContext
from statesvc.worker.worker_loop import Worker, WorkerLimits
from tests.world.database import Database
from tests.world.log_builder import MASTER, MORNING
from tests.world.lone_waker import LoneWaker

LIMITS = PoolLimits(
    connections_max=8,
    connections_min=1,
    acquire_seconds=5,
    statement_seconds=10,
    lock_seconds=5,
    idle_in_transaction_seconds=10,
)
CARRIER_ID = "acme"


def normalize(body: bytes, _received_at: datetime) -> Normalized:
    """Read `{"events": [...], "rejected": n}`, `unreadable`, or `defect`."""
    if body.startswith(b"unreadable"):
        raise UnreadableMessageError(Cause.UNREADABLE, "not JSON")
    if body.startswith(b"defect"):
        raise KeyError("a value of the body")
    document = json.loads(body)
    if document.get("defect"):
        raise KeyError("a value of the body")
    rejections = tuple(
        Rejection(pointer=f"/events/{n}", why="no code and no time")
        for n in range(document.get("rejected", 0))
    )
    return Normalized(readings=tuple(map(_reading, document["events"])), rejections=rejections)


def _reading(stated: dict[str, Any]) -> Reading:
    at = MORNING + timedelta(minutes=stated.pop("minute", 0))
    is_timed = stated.pop("is_timed", True)
    status, reason = stated.pop("status", None), stated.pop("reason", None)
    contradicted = stated.pop("contradicted", None)
    return Reading(
        tracking_number=stated.pop("number"),
        kind=Kind(stated.pop("kind", "scan")),
        raw=Raw(type=stated.pop("type", "T"), code=stated.pop("code", "X1")),
        time=PrintedTime(
            printed=f"{at:%Y%m%d %H%M}",
            instant=at,
            tz_source=TzSource.EXPLICIT if is_timed else TzSource.RECEIVED,
            precision=TimePrecision.MINUTE,
            identity=f"{at:%Y%m%dT%H%M}" if is_timed else "",
        ),
        place=EventPlace(city=stated.pop("city", "Springfield"), country="US"),
        status=Status(status) if status else None,
        reason=Reason(reason) if reason else None,
        contradicted=Status(contradicted) if contradicted else None,
        **stated,
    )


def push_body(
    *events: dict[str, Any], envelope: object = 0, rejected: int = 0, named: Sequence[str] = ()
) -> bytes:
    """Build a push; another `envelope` makes other bytes of the same statements.

    `named`: numbers that it says nothing about.
    """
    return json.dumps(
        {"events": events, "rejected": rejected, "envelope": envelope, "named": named}
    ).encode()


ACME = Carrier(
    carrier_id=CARRIER_ID,
    name="Acme",
    number_fields=("number", "named"),
    normalizers={"1": normalize},
    stable="1",
    formats=("json",),
    authentication=(),
)


@dataclass
class WorkerHarness:
    """Pushes go in, batches are worked on one claim at a time, and the log is looked at."""

    context: BatchContext
    connection: AsyncConnection[Any]
    database: Database
    keyring: Keyring

    async def push(self, *bodies: bytes, carrier_id: str = CARRIER_ID) -> list[UUID]:
        stored = await put(
            self.connection, [seal_message(self.keyring, carrier_id, body, "{}") for body in bodies]
        )
        return [message.message_id for message in stored]

    async def claim(self, limit: int = 64, *, lease_seconds: float = 30) -> list[Message]:
        request = ClaimRequest(
            worker=self.context.worker,
            limit=limit,
            lease_seconds=lease_seconds,
            bytes_max=4 << 20,
            sweep=True,
        )
        return (await claim(self.connection, request)).messages

    async def process(self, messages: list[Message], *, lease_seconds: float = 30) -> int:
        return await process(self.context, messages, lease_ends=time.monotonic() + lease_seconds)

    async def work(self, limit: int = 64) -> int:
        """Work until nothing is ready. Return how many changes were applied."""
        changes = 0
        while messages := await self.claim(limit):
            changes += await self.process(messages)
        return changes

    @asynccontextmanager
    async def worker(
        self, listener: Listener | None = None, *, seconds: float = 20, **limits: Any
    ) -> AsyncIterator[Worker]:
        """Run a worker for the time of the block, woken by its listener if that was started."""
        dsn = self.database.service_dsn
        listener, waker = listener or Listener(dsn, READY_NOW), LoneWaker(dsn)
        worker = Worker(
            self.context,
            listener=listener,
            woken=listener.event(INBOX),
            ready_now=listener.event(INBOX_NOW),
            waker=waker,
            limits=WorkerLimits(**limits),
        )
        running = asyncio.create_task(worker.run())
        async with asyncio.timeout(seconds):
            try:
                yield worker
            finally:
                worker.stop()
                await running
                await listener.stop()
                await waker.stop()

    async def ingest(self, *events: dict[str, Any], **more: Any) -> UUID:
        """Push one message, and work on it."""
        (message_id,) = await self.push(push_body(*events, **more))
        await self.work()
        return message_id

    async def rows(self, query: str, *parameters: Any) -> list[Any]:
        return await (await self.connection.execute(query.encode(), parameters or None)).fetchall()

    async def value(self, query: str, *parameters: Any) -> Any:
        return (await self.rows(query, *parameters))[0][0]

    async def until(self, query: str, wanted: Any, *, seconds: float = 10) -> None:
        """Wait until the query answers what is wanted."""
        async with asyncio.timeout(seconds):
            while True:
                if await self.value(query) == wanted:
                    return
                await asyncio.sleep(0.01)

    async def as_owner(self, statement: str) -> None:
        async with await AsyncConnection.connect(
            self.database.owner_dsn, autocommit=True
        ) as connection:
            await connection.execute(statement.encode())

    async def events(self, number: str) -> list[dict[str, Any]]:
        found = await self.rows(
            "SELECT canonical FROM statesvc.event WHERE shipment_id = %s ORDER BY version",
            shipment(number),
        )
        return [json.loads(decompress_json(canonical)) for (canonical,) in found]

    async def transitions(self, number: str) -> list[tuple[str, str, int]]:
        return await self.rows(
            "SELECT from_status, to_status, sequence FROM statesvc.transition WHERE shipment_id ="
            " %s ORDER BY sequence",
            shipment(number),
        )

    async def verdicts(self) -> dict[str, float]:
        """Return the verdicts counted by these workers."""
        found = {}
        for metric in self.context.telemetry.registry.collect():
            for sample in metric.samples:
                if "verdict" in sample.labels:
                    found[sample.labels["verdict"]] = sample.value
        return found


def shipment(number: str) -> UUID:
    return shipment_id(CARRIER_ID, normalize_number(number), "")


@pytest.fixture
def log() -> io.StringIO:
    """Capture what the workers log, as they would in production."""
    lines = io.StringIO()
    structlog.configure(
        processors=pipeline("worker", "json"), logger_factory=structlog.PrintLoggerFactory(lines)
    )
    return lines


@pytest.fixture
async def pool(database: Database) -> AsyncIterator[Pool]:
    async with make_pool(database.service_dsn, name="test", limits=LIMITS) as pool:
        yield pool


@pytest.fixture
# its workers log there
async def harness(database: Database, pool: Pool, log: io.StringIO) -> AsyncIterator[WorkerHarness]:  # noqa: ARG001
    telemetry = Telemetry()
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        keyring = await load_keyring(connection, MASTER)
        context = BatchContext(
            pool=pool,
            keyring=keyring,
            carriers={CARRIER_ID: ACME},
            telemetry=telemetry,
            worker="worker-1",
        )
        yield WorkerHarness(context, connection, database, keyring)
    telemetry.close()
