"""Entries of all seven kinds on a real database, written through the service's own transactions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.crypto.sealing import MasterKeys, SealingKey
from events.entry.kinds import EntryName, Provenance, leaf, leaf_hash_of, observation_document
from events.event import EventPlace, PrintedTime, Raw, Reading
from events.identity.ids import identify
from events.merkle.checkpoint import Checkpoint, open_checkpoint
from events.merkle.compact_range import CompactRange
from events.vocabulary import Kind, Status, TimePrecision, TzSource
from statesvc.append.append_batch import AppendBatch
from statesvc.append.transaction import append
from statesvc.database.keyring_store import load_keyring
from statesvc.delivery.attempt_entry import EndedNotification, append_ends
from statesvc.delivery.attempt_part import DeliveryAttempt
from statesvc.delivery.notification import Notification, QueuedNotification, body_of
from statesvc.delivery.outcome import Answer, AttemptOutcome, EndOutcome
from statesvc.log.actions import record_action
from statesvc.log.batch_row import begin_batch, write_batch
from statesvc.log.checkpoints import SignedHead, latest_head
from statesvc.log.fanouts import Fanout, append_fanouts
from statesvc.log.json_compression import compress_json, decompress_json
from statesvc.log.signing_keys import read_keys
from statesvc.reading.read_message import Read
from statesvc.sealer.leadership import Publication, publish, signers_of, take_stock
from statesvc.sealer.seal import seal
from tests.world.database import Database

MASTER = MasterKeys([bytes(range(32))])
MORNING = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
NOWHERE = Publication(file=None, origin="log.example/tests")
WAY = (
    Status.INFO_RECEIVED,
    Status.PICKED_UP,
    Status.IN_TRANSIT,
    Status.OUT_FOR_DELIVERY,
    Status.DELIVERED,
)
_NOTIFICATION = """INSERT INTO statesvc.notification
    (shipment_id, sequence, subscription_id, created_at, occurred_at, webhook_id, type, carrier_id, tracking_number, from_status, to_status)
SELECT e.shipment_id, 1, %s, e.recorded_at, e.occurred_at, statesvc.webhook_id(%s, statesvc.leaf_hash(b.leaf_hashes, e.ordinal)),
    'shipment.status_changed', e.carrier_id, k.number, 'unknown', 'info_received'
FROM statesvc.event e JOIN statesvc.stream k USING (shipment_id) JOIN statesvc.batch b USING (batch_id)
WHERE e.shipment_id = %s AND e.version = 1
RETURNING webhook_id"""
_OBSERVATION = """INSERT INTO statesvc.observation
    (shipment_id, version, kind, recorded_at, since, batch_id, ordinal, canonical)
VALUES (%s, %s, 'stalled', %s, %s, %s, 0, %s)"""


def scan(
    number: str,
    minute: int,
    status: Status | None,
    *,
    code: str = "X1",
    native_id: str | None = None,
    **fields: Any,
) -> Reading:
    at = MORNING + timedelta(minutes=minute)
    return Reading(
        tracking_number=number,
        kind=fields.pop("kind", Kind.SCAN),
        status=status,
        raw=Raw(type="T", code=code),
        native_id=native_id,
        place=EventPlace(city="Springfield", region="IL", country="US"),
        description=f"scanned {minute}",
        time=PrintedTime(
            printed=f"{at:%Y-%m-%d %H:%M}",
            instant=at,
            tz_source=TzSource.EXPLICIT,
            precision=TimePrecision.MINUTE,
            identity=f"{at:%Y%m%dT%H%M}",
        ),
        **fields,
    )


@dataclass
class LogBuilder:
    """LogBuilder of a log. `connection` is the service's role in autocommit."""

    connection: AsyncConnection[Any]
    keyring: Keyring
    origin: str = NOWHERE.origin or ""
    publication: Publication = field(default=NOWHERE)

    async def append(
        self,
        *readings: Reading,
        carrier_id: str = "ups",
        received_at: datetime = MORNING,
        commit: bool = True,
        notify: bool = True,
    ) -> UUID:
        """Apply a carrier's message as a worker does it."""
        source = Provenance(
            message_id=uuid4(),
            body_commitment=bytes(32),
            received_at=received_at,
            normalizer=carrier_id,
            normalizer_version="1",
            notify=notify,
        )
        events = tuple(
            identify(reading, carrier_id=carrier_id, digest=self.keyring.carrier_digest(carrier_id))
            for reading in readings
        )
        read = Read(
            source=source,
            carrier_id=carrier_id,
            events=events,
            rejections=(),
            body_key=SealingKey.fresh(),
            sealed_key=b"",
        )
        async with self.connection.transaction() if commit else nullcontext():
            await append(AppendBatch(self.connection, self.keyring, [read], "worker-1"))
        return source.message_id

    async def parcel(self, number: str, steps: int = len(WAY)) -> None:
        """Apply a parcel's whole way, a message for each step."""
        for place, status in enumerate(WAY[:steps]):
            await self.append(scan(number, place, status))

    async def conflict(self, number: str) -> None:
        """Apply the same scan with other facts."""
        for code in ("A1", "B2"):
            await self.append(scan(number, 50, None, code=code, native_id=f"scan-{number}"))

    async def act(self, target: str = "carrier ups", verb: str = "rollout.hold") -> None:
        async with self.connection.transaction():
            await record_action(
                self.connection,
                actor="cli:ops",
                verb=verb,
                target=target,
                details={"why": "a test"},
            )

    async def attempt(self) -> None:
        """Notify one subscriber of the oldest shipment: a fan-out, and its end after one try."""
        async with self.connection.transaction():
            row = await (
                await self.connection.execute(
                    "SELECT k.shipment_id, k.sealed_key, statesvc.leaf_hash(b.leaf_hashes,"
                    " e.ordinal) FROM statesvc.stream k JOIN statesvc.event e ON e.shipment_id ="
                    " k.shipment_id AND e.version = 1 JOIN statesvc.batch b USING (batch_id)"
                    " LIMIT 1"
                )
            ).fetchone()
            assert row is not None
            shipment_id, sealed_key, event = row
            subscription_id = uuid4()
            made = await (
                await self.connection.execute(
                    _NOTIFICATION, (subscription_id, subscription_id, shipment_id)
                )
            ).fetchone()
            assert made is not None
            stamp = await (await begin_batch(self.connection)).rows()
            recorded_at = stamp.recorded_at
            fanout = Fanout(
                shipment_id=shipment_id,
                sequence=1,
                event=event,
                from_status="unknown",
                to_status="info_received",
                subscriptions=[subscription_id],
                recorded_at=recorded_at,
            )
            leaf_hashes = await append_fanouts(self.connection, [fanout], now=stamp)
            await write_batch(
                self.connection,
                batch_id=stamp.batch_id,
                recorded_at=recorded_at,
                leaf_hashes=leaf_hashes,
                writer="worker-1",
            )
        notification = Notification(
            webhook_id=made[0],
            type="shipment.status_changed",
            created_at=recorded_at,
            occurred_at=MORNING,
            carrier_id="ups",
            tracking_number="1Z0001",
            from_status="unknown",
            to_status="info_received",
            sequence=1,
        )
        queued = QueuedNotification(
            subscription_id=subscription_id,
            shipment_id=shipment_id,
            sequence=1,
            attempts=1,
            notification=notification,
            sealed_key=sealed_key,
        )
        answer = Answer(
            outcome=AttemptOutcome.DELIVERED,
            duration_seconds=0.007,
            status_code=204,
            response=b"thanks",
        )
        tried = DeliveryAttempt(
            queued=queued, answer=answer, started_at=recorded_at, body=body_of(notification)
        )
        async with self.connection.transaction():
            stamp = await (await begin_batch(self.connection)).rows()
            end = EndedNotification.of(queued, EndOutcome.DELIVERED, [tried])
            leaf_hashes = await append_ends(self.connection, self.keyring, [end], now=stamp)
            await write_batch(
                self.connection,
                batch_id=stamp.batch_id,
                recorded_at=stamp.recorded_at,
                leaf_hashes=leaf_hashes,
                writer="notifier-1",
            )

    async def observe(self) -> None:
        """Observe that the oldest shipment stalled."""
        async with self.connection.transaction():
            row = await (
                await self.connection.execute(
                    "SELECT shipment_id, version, recorded_at FROM statesvc.stream LIMIT 1"
                )
            ).fetchone()
            assert row is not None
            shipment_id, version, since = row
            now, batch_id, epoch, _ = await (await begin_batch(self.connection)).rows()
            details = {
                "cause": "d1-260301-none",
                "hours": 72,
                "rules": 0,
                "sequence": -999_999,
                "status": "in_transit",
            }
            entry = leaf(
                observation_document(
                    shipment_id=shipment_id,
                    version=version,
                    kind="stalled",
                    since=since,
                    details=details,
                    recorded_at=now,
                ),
                epoch=epoch,
            )
            row = (shipment_id, version, now, since, batch_id, compress_json(entry.canonical))
            await self.connection.execute(_OBSERVATION, row)
            await self._know(shipment_id, observed=[["stalled", details["cause"]]])
            await write_batch(
                self.connection,
                batch_id=batch_id,
                recorded_at=now,
                leaf_hashes=[entry.leaf_hash],
                writer="worker-1",
            )

    async def _know(self, shipment_id: UUID, **fields: Any) -> None:
        """Add fields to what is known of a shipment."""
        ((stored,),) = await self.rows(
            f"SELECT state FROM statesvc.shipment WHERE shipment_id = '{shipment_id}'"
        )
        state = orjson.dumps(orjson.loads(decompress_json(stored)) | fields)
        await self.connection.execute(
            "UPDATE statesvc.shipment SET state = %s WHERE shipment_id = %s",
            (compress_json(state), shipment_id),
        )

    async def everything(self) -> None:
        """Make entries of all seven kinds, several shipments, several versions."""
        for number in ("1Z0001", "1Z0002", "1Z0003"):
            await self.parcel(number)
        await self.conflict("1Z0002")
        await self.attempt()
        await self.observe()
        await self.act()

    async def seal(self) -> SignedHead:
        """Take the lead, seal what is committed, sign and publish."""
        sealed, _ = await take_stock(self.connection, MASTER, self.publication)
        done = await seal(self.connection, sealed, from_id=0)
        if done.batches:
            await publish(
                self.connection,
                done.sealed,
                await signers_of(self.connection, MASTER),
                self.publication,
            )
        head = await latest_head(self.connection)
        assert head is not None
        return head

    async def opened(self) -> Checkpoint:
        """Return the newest checkpoint, its signature checked."""
        head = await latest_head(self.connection)
        assert head is not None
        return open_checkpoint(
            head.note,
            [key.verifier for key in await read_keys(self.connection)],
            origin=self.origin,
        ).checkpoint

    async def leaves(self) -> list[bytes]:
        """Return the leaf hash of every sealed entry by index, gathered from the entries
        themselves.
        """
        rows = await self.rows(
            "SELECT s.first_index + e.ordinal, e.canonical FROM statesvc.sealed_batch s JOIN ("
            + " UNION ALL ".join(
                f"SELECT batch_id, ordinal, canonical FROM statesvc.{kind}" for kind in EntryName
            )
            + ") e USING (batch_id) ORDER BY 1"
        )
        assert [index for index, _ in rows] == list(range(len(rows)))
        return [leaf_hash_of(decompress_json(stored)) for _, stored in rows]

    async def rows(self, query: str) -> list[Any]:
        return await (await self.connection.execute(query.encode())).fetchall()


def root_of(leaves: list[bytes]) -> bytes:
    tree = CompactRange()
    tree.extend(leaves)
    return tree.root()


@asynccontextmanager
async def log_builder(
    database: Database, publication: Publication = NOWHERE
) -> AsyncIterator[LogBuilder]:
    """Open a story on a fresh database."""
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        await connection.execute("SET timezone = 'UTC'")
        keyring = await load_keyring(connection, MASTER)
        yield LogBuilder(connection, keyring, publication=publication)


@pytest.fixture
async def event_log(database: Database) -> AsyncIterator[LogBuilder]:
    async with log_builder(database) as log:
        yield log
