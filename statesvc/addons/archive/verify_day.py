"""Verifies a day's archive against its partition by reading the file back: the code that wrote it is not trusted."""

import asyncio
from collections.abc import Iterator
from datetime import date
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.crypto.sealing import SealError
from statesvc.addons.archive.archive_file import ArchiveFileError, ArchiveReader
from statesvc.addons.archive.archive_pass import NotVerifiedError
from statesvc.addons.archive.day import BodyBatch, DayBatchLimits, day_batches
from statesvc.addons.archive.write_day import Pause
from statesvc.bodies.body_key import open_committed
from statesvc.bodies.retained_bodies import retain_hot
from statesvc.files.archive_folder import ArchivePath
from statesvc.files.body_record import BodyRecord


async def verify_day(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    path: ArchivePath,
    day: date,
    *,
    limits: DayBatchLimits,
    pause: Pause,
) -> int:
    """Verify that every body opens and matches its commitment, none is missing, none is too many. Keep those under legal hold on the way.

    Returns how many bodies were compared. Raises `NotVerifiedError`.
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
        if (surplus := records.peek()) is not None:
            raise NotVerifiedError(
                f"{path.name} holds message {surplus.message_id}, which the partition does not have"
            )
        for message_id in records.some_ids():
            found = await asyncio.to_thread(archive.find, message_id)
            if found is None or found.message_id != message_id:
                raise NotVerifiedError(
                    f"{path.name}: the index does not lead to message {message_id}"
                )
    return compared


class _Records:
    """The file's records in their order, one ahead."""

    def __init__(self, archive: ArchiveReader) -> None:
        self._all: Iterator[BodyRecord] = iter(archive)
        self._next: BodyRecord | None = next(self._all, None)
        self._ids: list[UUID] = []
        self._seen = 0

    def peek(self) -> BodyRecord | None:
        return self._next

    def take(self, message_id: UUID) -> BodyRecord | None:
        """Return the record of this message, None where the file goes on with another."""
        record = self._next
        if record is None or record.message_id != message_id:
            return None
        self._next = next(self._all, None)
        # a sample that stays small: ids at 0, 1, 3, 7, 15 ...
        if self._seen & (self._seen + 1) == 0:
            self._ids.append(message_id)
        self._seen += 1
        return record

    def some_ids(self) -> list[UUID]:
        return self._ids


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
        if record != body.record(record.sealed):
            raise NotVerifiedError(f"message {body.message_id} is described differently")
