"""Entries of all five kinds on a real database, written through the service's own transactions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from psycopg import AsyncConnection

from events.checkpoint import Checkpoint, open_checkpoint
from events.crypto.keyring import Keyring, attempt_context
from events.crypto.sealing import MasterKeys, SealingKey, commitment, salted
from events.entry import Provenance, attempt_document, leaf
from events.event import EventPlace, PrintedTime, Raw, Reading
from events.identity import identify
from events.merkle.compact_range import CompactRange
from events.vocabulary import Kind, Status, TimePrecision, TzSource
from statesvc.append.transaction import AppendBatch, append
from statesvc.database.keyring_store import load_keyring
from statesvc.delivery.attempt_entry import attempt_part
from statesvc.inbox.read_message import Read
from statesvc.log.actions import record_action
from statesvc.log.batch_row import tick, write_batch
from statesvc.log.checkpoints import SignedHead, latest_head
from statesvc.log.signing_keys import read_keys
from statesvc.sealer.leadership import Publication, publish, signers_of, take_stock
from statesvc.sealer.seal import seal
from tests.world.database import Database

MASTER = MasterKeys([bytes(range(32))])
MORNING = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
NOWHERE = Publication(file=None, origin="log.example/tests")
WAY = (Status.INFO_RECEIVED, Status.PICKED_UP, Status.IN_TRANSIT, Status.OUT_FOR_DELIVERY, Status.DELIVERED)
_ATTEMPT = """INSERT INTO statesvc.attempt
    (shipment_id, sequence, subscription_id, number, recorded_at, started_at, batch_id, ordinal, webhook_id, outcome, status_code,
     duration_ms, leaf_hash, canonical, sealed_part)
VALUES (%s, 1, %s, 1, %s, %s, %s, 0, %s, 'accepted', 204, 7, %s, %s, %s)"""


def scan(number: str, minute: int, status: Status | None, *, code: str = "X1", native_id: str | None = None, **fields: Any) -> Reading:
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
class Story:
    """What happens to a log. `connection` is the service's role in autocommit."""

    connection: AsyncConnection[Any]
    keyring: Keyring
    origin: str = NOWHERE.origin or ""
    publication: Publication = field(default=NOWHERE)

    async def say(self, *readings: Reading, carrier_id: str = "ups", commit: bool = True) -> None:
        """A carrier's message, applied as a worker does it."""
        source = Provenance(
            message_id=uuid4(), body_commitment=bytes(32), received_at=MORNING, normalizer=carrier_id, normalizer_version="1"
        )
        events = tuple(identify(reading, carrier_id=carrier_id, digest=self.keyring.carrier_digest(carrier_id)) for reading in readings)
        read = Read(source=source, carrier_id=carrier_id, events=events, rejections=(), body_key=SealingKey.fresh(), sealed_key=b"")
        if commit:
            async with self.connection.transaction():
                await append(AppendBatch(self.connection, self.keyring, [read], "worker-1"))
        else:
            await append(AppendBatch(self.connection, self.keyring, [read], "worker-1"))

    async def parcel(self, number: str, steps: int = len(WAY)) -> None:
        """A parcel's whole way, a message for each step."""
        for place, status in enumerate(WAY[:steps]):
            await self.say(scan(number, place, status))

    async def conflict(self, number: str) -> None:
        """The same scan with other facts."""
        for code in ("A1", "B2"):
            await self.say(scan(number, 50, None, code=code, native_id=f"scan-{number}"))

    async def act(self, target: str = "carrier ups", verb: str = "rollout.hold") -> None:
        async with self.connection.transaction():
            await record_action(self.connection, actor="cli:ops", verb=verb, target=target, details={"why": "a test"})

    async def attempt(self) -> None:
        """One try at telling somebody about the oldest shipment."""
        async with self.connection.transaction():
            row = await (await self.connection.execute("SELECT shipment_id, sealed_key FROM statesvc.stream LIMIT 1")).fetchone()
            assert row is not None
            shipment_id, sealed_key = row
            subscription_id, webhook_id = uuid4(), f"n1-{uuid4().hex}"
            recorded_at, batch_id, epoch = await tick(self.connection)
            part = salted(attempt_part(bytes(32), b"thanks"))
            entry = leaf(
                attempt_document(
                    webhook_id=webhook_id,
                    subscription_id=subscription_id,
                    shipment_id=shipment_id,
                    sequence=1,
                    number=1,
                    started_at=recorded_at,
                    recorded_at=recorded_at,
                    duration_ms=7,
                    outcome="accepted",
                    status_code=204,
                    body_commitment=bytes(32),
                    part_commitment=commitment(part),
                ),
                epoch=epoch,
            )
            key = self.keyring.open_shipment_key(sealed_key, shipment_id)
            sealed_part = key.seal(part, attempt_context(shipment_id, webhook_id, 1))
            await self.connection.execute(
                _ATTEMPT,
                (
                    *(shipment_id, subscription_id, recorded_at, recorded_at, batch_id, webhook_id),
                    *(entry.leaf_hash, entry.canonical, sealed_part),
                ),
            )
            await write_batch(
                self.connection, batch_id=batch_id, recorded_at=recorded_at, leaf_hashes=[entry.leaf_hash], writer="notifier-1"
            )

    async def everything(self) -> None:
        """Entries of all five kinds, several shipments, several versions."""
        for number in ("1Z0001", "1Z0002", "1Z0003"):
            await self.parcel(number)
        await self.conflict("1Z0002")
        await self.attempt()
        await self.act()

    async def seal(self) -> SignedHead:
        """Takes the lead, seals what is committed, signs and publishes."""
        sealed, _ = await take_stock(self.connection, MASTER, self.publication)
        done = await seal(self.connection, sealed, from_id=0)
        if done.batches:
            await publish(self.connection, done.sealed, await signers_of(self.connection, MASTER), self.publication)
        head = await latest_head(self.connection)
        assert head is not None
        return head

    async def opened(self) -> Checkpoint:
        """The newest checkpoint, its signature checked."""
        head = await latest_head(self.connection)
        assert head is not None
        return open_checkpoint(head.note, [key.verifier for key in await read_keys(self.connection)], origin=self.origin).checkpoint

    async def leaves(self) -> list[bytes]:
        """The leaf hash of every sealed entry by index, gathered from the entries themselves."""
        rows = await self.rows(
            "SELECT s.first_index + e.ordinal, e.leaf_hash FROM statesvc.sealed_batch s JOIN ("
            + " UNION ALL ".join(
                f"SELECT batch_id, ordinal, leaf_hash FROM statesvc.{kind}"
                for kind in ("event", "conflict", "transition", "attempt", "action")
            )
            + ") e USING (batch_id) ORDER BY 1"
        )
        assert [index for index, _ in rows] == list(range(len(rows)))
        return [leaf_hash for _, leaf_hash in rows]

    async def rows(self, query: str) -> list[Any]:
        return await (await self.connection.execute(query.encode())).fetchall()


def root_of(leaves: list[bytes]) -> bytes:
    tree = CompactRange()
    tree.extend(leaves)
    return tree.root()


@asynccontextmanager
async def story(database: Database, publication: Publication = NOWHERE) -> AsyncIterator[Story]:
    """A story on a fresh database."""
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        await connection.execute("SET timezone = 'UTC'")
        keyring = await load_keyring(connection, MASTER)
        yield Story(connection, keyring, publication=publication)
