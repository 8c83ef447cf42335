"""Writing a day's archive: each body is compressed and sealed again under its own key.

So erasing still reaches it. No plaintext touches the disk. A body whose key was erased is left out;
a body that does not open although its key exists is written as it was.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any, Final

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring, body_context
from events.crypto.sealing import SealError
from statesvc.addons.archive.archive_file import ArchiveWriter, FinishedFile
from statesvc.addons.archive.day import BodyBatch, DayBatchLimits, HotBody, day_batches
from statesvc.bodies.body_key import open_committed
from statesvc.files.archive_folder import ArchiveNames, ArchivePath
from statesvc.files.body_record import BodyRecord

BODY_FILES: Final = ArchiveNames(subject="bodies", mark=b"body archive", suffixes=(".ssb",))
Pause = Callable[[], Awaitable[None]]
"""Awaited between two batches, so that archiving leaves room for everything else.

Raises to stop.
"""


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
    return key.seal_compressed(salted_body, body_context(body.message_id))
