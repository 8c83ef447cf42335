"""A pass of the archiver: write > verify > drop due days, expire old months, check an old file."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from itertools import islice
from typing import Any, Final
from uuid import UUID

import structlog
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.crypto.sealing import SealError
from statesvc.addons.archive.archive_file import ArchiveFileError, ArchiveReader
from statesvc.addons.archive.archive_identity import ArchiveIdentity, ArchiveRefusedError
from statesvc.addons.archive.archive_pass import (
    TRIES,
    ArchivePass,
    ArchivePassResult,
    ArchiveProgress,
    NotVerifiedError,
    PeriodFailedError,
    run_in_archive,
    until_let_go,
)
from statesvc.addons.archive.day import (
    BODY_FILES,
    BODY_LEDGER,
    ArchivedDay,
    BodyBatch,
    DayBatchLimits,
    Pause,
    any_hold,
    begin_day,
    day_batches,
    drop_day,
    drop_expired_messages,
    due_days,
    expire_day,
    expiring_days,
    longest_unchecked,
    newest_hold,
    note_checked,
    note_deleted,
    note_written,
    undeleted_days,
    write_day,
)
from statesvc.addons.archive.retained_bodies import (
    held_among,
    prune_retained,
    retain_archived,
    retain_hot,
)
from statesvc.bodies.sealed_message import open_committed
from statesvc.files.archive_folder import ArchivePath, file_fault, remove
from statesvc.files.body_record import BodyRecord

log = structlog.get_logger()

# Every file is read again at least this often, so that a loss is noticed.
CHECKED_DAYS: Final = 30
_RECORDS_AT_ONCE: Final = 500
Connection = AsyncConnection[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyArchiving:
    """Dependencies of a pass, and how long bodies are retained."""

    folder: ArchivePath
    keyring: Keyring
    hot_days: int
    keep_months: int
    pause: Pause
    drop_tries: int = TRIES
    batches: DayBatchLimits = field(default_factory=DayBatchLimits)
    report: Callable[[int, int], None] = lambda _done, _total: None
    """Receives the number of due days that are done."""


@dataclass(slots=True, kw_only=True)
class DayPassResult(ArchivePassResult):
    expired: list[date] = field(default_factory=list)
    messages_expired: list[date] = field(default_factory=list)
    """Months of verdicts with all bodies expired."""
    faults: list[date] = field(default_factory=list)
    bodies: int = 0
    pruned: int = 0


async def archive_days(connection: Connection, archiving: BodyArchiving) -> DayPassResult:
    """Archive and expire the days that are due.

    The caller's session leads; the connection is in autocommit.

    Database errors pass through.
    """
    identity, result = (
        ArchiveIdentity(connection, archiving.folder, archiving.keyring),
        DayPassResult(),
    )
    await run_in_archive(identity, result, partial(_archive_days, identity, archiving, result))
    return result


async def _archive_days(
    identity: ArchiveIdentity, archiving: BodyArchiving, result: DayPassResult
) -> None:
    connection = identity.connection
    steps = _DayPass(
        identity=identity,
        ledger=BODY_LEDGER,
        names=BODY_FILES,
        drop_tries=archiving.drop_tries,
        batches=archiving.batches,
        pause=archiving.pause,
        result=result,
    )
    due = list(await due_days(connection, hot_days=archiving.hot_days))
    for done, day in enumerate(due, start=1):
        await steps.archive(day, first=day, name=day.isoformat())
        archiving.report(done, len(due))
    # what follows deletes files, and bodies that files have
    await identity.require()
    await _expire(connection, archiving, result)
    # after the bodies: a verdict outlives the body that it explains
    await _expire_messages(connection, archiving, result)
    result.pruned = await prune_retained(connection)
    await _check_oldest(connection, archiving, result)


@dataclass(frozen=True, slots=True, kw_only=True)
class _DayPass(ArchivePass[date]):
    batches: DayBatchLimits
    pause: Pause
    result: DayPassResult

    async def begin(self, period: date) -> ArchiveProgress:
        return await begin_day(self.connection, period)

    async def write(self, period: date, prefix: str) -> Mapping[str, bytes]:
        with _shipment_keys():
            written = await write_day(
                self.connection,
                self.keyring,
                self.folder,
                prefix,
                period,
                limits=self.batches,
                pause=self.pause,
            )
        await note_written(self.connection, period, written)
        return {written.file_name: written.finished.sha256}

    async def verify(self, period: date, path: ArchivePath) -> None:
        with _shipment_keys():
            self.result.bodies += await verify_day(
                self.connection, self.keyring, path, period, limits=self.batches, pause=self.pause
            )

    async def leave(self, period: date, sha256: bytes) -> int:
        return await drop_day(self.connection, period, sha256)


@contextmanager
def _shipment_keys() -> Iterator[None]:
    try:
        yield
    except SealError as error:
        # not a body, but the key of a shipment: nothing is left out for that
        raise PeriodFailedError(f"a shipment's key does not open: {error}") from error


async def _expire(connection: Connection, archiving: BodyArchiving, outcome: DayPassResult) -> None:
    for archive in await expiring_days(connection, keep_months=archiving.keep_months):
        # before the copies: `expire_day` refuses if a hold came after this
        holds_known = await newest_hold(connection)
        try:
            await retain_held(connection, archiving, archive)
        except (OSError, ArchiveFileError) as error:
            # what a hold may stand on is in there: the file does not end before someone repaired it
            await _faulty(
                connection,
                archive.day,
                str(error) if isinstance(error, ArchiveFileError) else "it cannot be read",
                outcome,
            )
            continue
        if await expire_day(connection, archive.day, holds_known=holds_known):
            outcome.expired.append(archive.day)
    # marked as expired first, deleted then: a crash in between leaves a file that this finds again
    for archive in await undeleted_days(connection):
        try:
            await asyncio.to_thread(remove, archiving.folder / archive.file_name)
        except OSError as error:
            raise ArchiveRefusedError.of(archiving.folder, error) from error
        await note_deleted(connection, archive.day)


async def _expire_messages(
    connection: Connection, archiving: BodyArchiving, outcome: DayPassResult
) -> None:
    while (
        month := await until_let_go(
            lambda: drop_expired_messages(connection), tries=archiving.drop_tries
        )
    ) is not None:
        outcome.messages_expired.append(month)
        log.info("messages_expired", month=str(month))


async def retain_held(
    connection: Connection, archiving: BodyArchiving, archive: ArchivedDay
) -> None:
    """Copy out the bodies under a legal hold: they outlive the file."""
    # a lost file has nothing to copy, and without any hold none need be read
    if archive.is_lost or not await any_hold(connection):
        return
    with await asyncio.to_thread(ArchiveReader, archiving.folder / archive.file_name) as reader:
        records = iter(reader)
        while batch := await asyncio.to_thread(_some, records):
            held = await held_among(connection, archive.day, batch)
            for record in batch:
                if record.message_id in held:
                    await retain_archived(connection, record)
            await archiving.pause()


async def _check_oldest(
    connection: Connection, archiving: BodyArchiving, outcome: DayPassResult
) -> None:
    """Check the file that was not checked for the longest time."""
    found = await longest_unchecked(connection, days=CHECKED_DAYS)
    if found is None:
        return
    archive, sha256 = found
    fault = await asyncio.to_thread(file_fault, archiving.folder / archive.file_name, sha256)
    if fault is None:
        await note_checked(connection, archive.day, fault=None)
    else:
        await _faulty(connection, archive.day, fault, outcome)


def _some(records: Iterator[BodyRecord]) -> list[BodyRecord]:
    return list(islice(records, _RECORDS_AT_ONCE))


async def _faulty(connection: Connection, day: date, why: str, outcome: DayPassResult) -> None:
    outcome.faults.append(day)
    await note_checked(connection, day, fault=why)
    log.error("archive_faulty", archive=BODY_FILES.subject, period=day.isoformat(), why=why)


async def verify_day(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    path: ArchivePath,
    day: date,
    *,
    limits: DayBatchLimits,
    pause: Pause,
) -> int:
    """Read the file back, because the code that wrote it is not trusted, and return how
    many bodies were compared.

    Each must open and match its commitment, none may be missing, none too many. Keeps those under
    legal hold. Raises `NotVerifiedError`.
    """
    try:
        return await _verify(connection, keyring, path, day, limits=limits, pause=pause)
    except (ArchiveFileError, FileNotFoundError) as error:
        raise NotVerifiedError(
            f"{path.name}: {error if isinstance(error, ArchiveFileError) else 'is not there'}"
        ) from error


async def _verify(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    path: ArchivePath,
    day: date,
    *,
    limits: DayBatchLimits,
    pause: Pause,
) -> int:
    compared = 0
    with await asyncio.to_thread(ArchiveReader, path) as archive:
        if archive.day != day:
            raise NotVerifiedError(f"{path.name} is not the file that was written for {day}")
        records = await asyncio.to_thread(_Records, archive)
        async for batch in day_batches(connection, keyring, day, limits=limits):
            await asyncio.to_thread(_compare, batch, records, keyring)
            await retain_hot(
                connection, day, [body.message_id for body in batch.bodies if body.held]
            )
            compared += len(batch.bodies)
            await pause()
        if (surplus := records.next) is not None:
            raise NotVerifiedError(
                f"{path.name} holds message {surplus.message_id}, which the partition does not have"
            )
    return compared


class _Records:
    """The file's records in the order of its index, read one ahead."""

    def __init__(self, archive: ArchiveReader) -> None:
        self._all: Iterator[BodyRecord] = iter(archive)
        self.next: BodyRecord | None = next(self._all, None)

    def take(self, message_id: UUID) -> BodyRecord | None:
        """Return the record of this message, None where the file goes on with another."""
        record = self.next
        if record is None or record.message_id != message_id:
            return None
        self.next = next(self._all, None)
        return record


def _compare(batch: BodyBatch, records: _Records, keyring: Keyring) -> None:
    for body in batch.bodies:
        record = records.take(body.message_id)
        try:
            key = batch.body_key(body, keyring)
            if key is None:
                # erased: left out, or unreadable in the file as everywhere
                continue
            if record is None:
                raise NotVerifiedError(f"message {body.message_id} is missing")
            open_committed(
                key, record.sealed, message_id=body.message_id, committed=body.commitment
            )
        except SealError as error:
            if record is None or record.sealed != body.sealed:
                raise NotVerifiedError(f"message {body.message_id}: {error}") from error
        # the description is outside of the seal, so it is compared by itself
        if record != body.record(record.sealed):
            raise NotVerifiedError(f"message {body.message_id} is described differently")
