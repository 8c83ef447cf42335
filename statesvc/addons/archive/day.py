"""A day of bodies: its row in the ledger, its bodies in batches bounded by rows and bytes, its
file.

Every step of the ledger is a statement, so a crash leaves a row to continue from.

Each body is compressed and sealed again under its own key, so erasing still reaches it. No
plaintext touches the disk. A body whose key was erased is left out; a body that does not open
although its key exists is written as it was.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import class_row

from events.crypto.keyring import Keyring, body_context
from events.crypto.sealing import SealError, SealingKey
from statesvc.addons.archive.archive_file import ArchiveWriter, FinishedFile
from statesvc.addons.archive.archive_pass import ArchiveLedger, ArchiveProgress
from statesvc.bodies.sealed_message import open_committed, unwrap_body_key
from statesvc.database.queries import queries
from statesvc.files.archive_folder import ArchiveNames, ArchivePath
from statesvc.files.body_record import FIRST, BodyRecord, bounds
from statesvc.log.event_store import read_streams

_SQL = queries("statesvc.addons.archive", "day")


@dataclass(frozen=True, slots=True, kw_only=True)
class DayBatchLimits:
    bodies_max: int = 200
    bytes_max: int = 2 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class HotBody:
    """A body of the partition, with its wrapped key.

    `held`: a legal hold is on one of its shipments.
    """

    message_id: UUID
    received_at: datetime
    carrier_id: str
    commitment: bytes
    headers: Mapping[str, str]
    sealed: bytes = field(repr=False)
    sealed_key: bytes | None = field(repr=False)
    shipments: Sequence[UUID]
    held: bool

    def record(self, sealed: bytes) -> BodyRecord:
        return BodyRecord(
            message_id=self.message_id,
            received_at=self.received_at,
            carrier_id=self.carrier_id,
            commitment=self.commitment,
            headers=self.headers,
            sealed=sealed,
        )


@dataclass(frozen=True, slots=True)
class BodyBatch:
    """Some bodies, and the keys of the shipments that they name."""

    bodies: Sequence[HotBody]
    keys: Mapping[UUID, SealingKey | None] = field(repr=False)

    def body_key(self, body: HotBody, keyring: Keyring) -> SealingKey | None:
        """Return the body's key; None: erased. Raises SealError."""
        return unwrap_body_key(
            body.sealed_key,
            body.shipments,
            message_id=body.message_id,
            keys=self.keys,
            keyring=keyring,
        )


async def any_hold(connection: AsyncConnection[Any]) -> bool:
    row = await (await connection.execute(_SQL["any_hold"])).fetchone()
    return row is not None and bool(row[0])


async def day_batches(
    connection: AsyncConnection[Any], keyring: Keyring, day: date, *, limits: DayBatchLimits
) -> AsyncIterator[BodyBatch]:
    """Yield all bodies of the day.

    Each batch is a snapshot of its own: a message may settle between two.
    """
    asked = {
        **bounds(day),
        "holds": await any_hold(connection),
        "limit": limits.bodies_max,
        "bytes_max": limits.bytes_max,
    }
    after = FIRST
    while True:
        cursor = connection.cursor(binary=True, row_factory=class_row(HotBody))
        bodies = await (
            await cursor.execute(_SQL["day_bodies"], {**asked, "after": after})
        ).fetchall()
        # by an empty batch, not by a short one: bytes bound a batch as well as rows
        if not bodies:
            return
        streams = await read_streams(
            connection, keyring, {shipment_id for body in bodies for shipment_id in body.shipments}
        )
        yield BodyBatch(
            bodies,
            {shipment_id: stream.key for shipment_id, stream in (await streams.rows()).items()},
        )
        # by id, not by offset: a body that leaves meanwhile must not shift the others
        after = bodies[-1].message_id


BODY_FILES: Final = ArchiveNames(subject="bodies", mark=b"body archive", suffixes=(".ssb",))
# Awaited between two batches, so that archiving leaves room for everything else. Raises to stop.
Pause = Callable[[], Awaitable[None]]


class Fate(StrEnum):
    COMPRESSED = "compressed"
    UNOPENED = "unopened"
    ERASED = "erased"


@dataclass(frozen=True, slots=True)
class WrittenDay:
    """A complete file on the disk, to be verified."""

    file_name: str
    finished: FinishedFile
    fates: Counter[Fate]


async def write_day(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    folder: ArchivePath,
    prefix: str,
    day: date,
    *,
    limits: DayBatchLimits,
    pause: Pause,
) -> WrittenDay:
    """Write and publish the file, with a name that begins with `prefix`.

    A crash leaves an ignored file.
    """
    fates: Counter[Fate] = Counter()
    with BODY_FILES.unfinished(folder, prefix) as files:
        with ArchiveWriter(files.paths[0], day) as writer:
            async for batch in day_batches(connection, keyring, day, limits=limits):
                for fate, record in await asyncio.to_thread(_sealed_again, batch, keyring):
                    fates[fate] += 1
                    if record is not None:
                        writer.add(record)
                await pause()
            finished = await asyncio.to_thread(writer.finish)
        name = await asyncio.to_thread(files.publish, finished.sha256)
    return WrittenDay(name, finished, fates)


def _sealed_again(batch: BodyBatch, keyring: Keyring) -> list[tuple[Fate, BodyRecord | None]]:
    return list(_each(batch, keyring))


def _each(batch: BodyBatch, keyring: Keyring) -> Iterator[tuple[Fate, BodyRecord | None]]:
    for body in batch.bodies:
        try:
            sealed = _compressed(batch, body, keyring)
        except SealError:
            # kept as it was: the fault may be in the key store, and a dropped body would be lost
            # for good
            yield Fate.UNOPENED, body.record(body.sealed)
        else:
            yield (Fate.ERASED, None) if sealed is None else (Fate.COMPRESSED, body.record(sealed))


def _compressed(batch: BodyBatch, body: HotBody, keyring: Keyring) -> bytes | None:
    key = batch.body_key(body, keyring)
    if key is None:
        return None
    salted_body = open_committed(
        key, body.sealed, message_id=body.message_id, committed=body.commitment
    )
    # under its own key again: erasing the shipment still closes the archived body
    return key.seal_compressed(salted_body, body_context(body.message_id))


BODY_LEDGER = ArchiveLedger(_SQL)
Connection = AsyncConnection[Any]


class ArchivedDay(NamedTuple):
    day: date
    file_name: str
    is_lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRecord:
    day: date
    begun_at: datetime
    file_name: str | None
    sha256: bytes | None
    size_bytes: int | None
    bodies: int | None
    compressed: int | None
    unopened: int | None
    erased: int | None
    written_at: datetime | None
    verified_at: datetime | None
    dropped_at: datetime | None
    expired_at: datetime | None
    deleted_at: datetime | None
    checked_at: datetime | None
    fault: str | None
    lost_at: datetime | None
    failures: int
    failed_at: datetime | None
    failure: str | None


async def due_days(connection: Connection, *, hot_days: int) -> list[date]:
    """Return days to archive, the oldest first."""
    return [
        day async for (day,) in await connection.execute(_SQL["due_days"], {"hot_days": hot_days})
    ]


async def begin_day(connection: Connection, day: date) -> ArchiveProgress:
    """Open the day's row, or find how far it came."""
    cursor = await connection.execute(_SQL["begin_day"], {"day": day}, binary=True)
    row = await cursor.fetchone()
    if row is None:
        raise LookupError("an upsert answers with its row")
    file_name, sha256, verified = row
    return ArchiveProgress({} if file_name is None else {file_name: sha256}, verified)


async def note_written(connection: Connection, day: date, written: WrittenDay) -> None:
    """Note that the file is complete and on the disk."""
    await connection.execute(
        _SQL["note_written"],
        {
            "day": day,
            "file_name": written.file_name,
            "sha256": written.finished.sha256,
            "size_bytes": written.finished.size_bytes,
            **{fate.value: written.fates[fate] for fate in Fate},
        },
    )


async def drop_day(connection: Connection, day: date, sha256: bytes) -> int:
    """Drop the partition; return how many bodies were retained because they still wait.

    Raises where the lock does not come at once.
    """
    row = await (
        await connection.execute(_SQL["drop_day"], {"day": day, "sha256": sha256})
    ).fetchone()
    return 0 if row is None else int(row[0])


async def expiring_days(connection: Connection, *, keep_months: int) -> list[ArchivedDay]:
    cursor = await connection.execute(_SQL["expiring_days"], {"keep_months": keep_months})
    return [ArchivedDay(*row) for row in await cursor.fetchall()]


async def drop_expired_messages(connection: Connection) -> date | None:
    """Drop the verdicts of the month with expired bodies, and return it; None: none is due.

    Raises if the lock is not free at once.
    """
    row = await (await connection.execute(_SQL["drop_expired_messages"])).fetchone()
    return None if row is None else row[0]


async def newest_hold(connection: Connection) -> int:
    """Return the last legal hold that was placed; 0: none ever."""
    row = await (await connection.execute(_SQL["newest_hold"])).fetchone()
    return 0 if row is None else int(row[0])


async def expire_day(connection: Connection, day: date, *, holds_known: int) -> bool:
    """End the day, unless a hold was placed after `holds_known`: then its bodies
    are to be searched first.
    """
    async with connection.transaction():
        await connection.execute(_SQL["stop_holds"])
        # asked under the lock that stops new holds: a hold in between must still find its bodies
        if await newest_hold(connection) != holds_known:
            return False
        await connection.execute(_SQL["note_expired"], {"day": day})
    return True


async def undeleted_days(connection: Connection) -> list[ArchivedDay]:
    """Return expired archives with files to delete."""
    return [
        ArchivedDay(*row)
        for row in await (await connection.execute(_SQL["undeleted_days"])).fetchall()
    ]


async def note_deleted(connection: Connection, day: date) -> None:
    await connection.execute(_SQL["note_deleted"], {"day": day})


async def longest_unchecked(
    connection: Connection, *, days: int
) -> tuple[ArchivedDay, bytes] | None:
    """Return the file that was not checked for longest, for more than `days`, and its digest."""
    row = await (
        await connection.execute(_SQL["longest_unchecked"], {"days": days}, binary=True)
    ).fetchone()
    return None if row is None else (ArchivedDay(row[0], row[1]), row[2])


async def note_checked(connection: Connection, day: date, *, fault: str | None) -> None:
    await connection.execute(_SQL["note_checked"], {"day": day, "fault": fault})


async def archives(connection: Connection) -> list[DayRecord]:
    return await (
        await connection.cursor(binary=True, row_factory=class_row(DayRecord)).execute(
            _SQL["archives"]
        )
    ).fetchall()
