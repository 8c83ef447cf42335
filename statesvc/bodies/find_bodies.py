"""Finds the sealed body of a message: in the database or in the archive of its day."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import class_row

from statesvc.database.queries import queries, timestamps, uuids
from statesvc.files.archive_errors import UnreadableArchiveError
from statesvc.files.archive_folder import ArchivePath
from statesvc.files.body_record import BodyRecord
from statesvc.log.archived_files import archived_files

_SQL = queries("statesvc.bodies", "find_bodies")

# A message, and when it was received: that leads to its day.
Wanted = tuple[UUID, datetime]


class BodyLocation(StrEnum):
    """Location of a body. `MISSING`: no record explains its absence."""

    HOT = "hot"
    ARCHIVED = "archived"
    EXPIRED = "expired"
    ERASED = "erased"
    MISSING = "missing"


class ArchiveUnavailableError(RuntimeError):
    """Bodies are in an archive that this process cannot read: no folder is set, or the file
    is missing or altered.
    """


async def find_bodies(
    connection: AsyncConnection[Any], folder: ArchivePath | None, wanted: Sequence[Wanted]
) -> dict[UUID, BodyRecord]:
    """Return the bodies as they are stored; without those that expired or were left out as erased.

    Raises `ArchiveUnavailableError`.
    """
    cursor = connection.cursor(binary=True, row_factory=class_row(BodyRecord))
    # tables first: a day that leaves them between the two look-ups is in its archive by then
    found = {
        body.message_id: body
        for body in await (await cursor.execute(_SQL["hot_bodies"], _asked(wanted))).fetchall()
    }
    days: dict[date, list[UUID]] = defaultdict(list)
    for message_id, received_at in wanted:
        if message_id not in found:
            days[received_at.astimezone(UTC).date()].append(message_id)
    # most bodies are hot: the ledger of archives is not asked for them
    if not days:
        return found
    async for day, file_name in await connection.execute(
        _SQL["archives_of_days"], {"days": list(days)}
    ):
        if folder is None:
            raise ArchiveUnavailableError(
                f"the bodies of {day} are archived, and no STATESVC_ARCHIVE_DIR is set here"
            )
        # in a thread: a file on a network volume may take seconds
        found |= await asyncio.to_thread(_read, folder / file_name, days[day])
    return found


async def body_locations(
    connection: AsyncConnection[Any], wanted: Sequence[Wanted]
) -> Mapping[UUID, BodyLocation]:
    cursor = await connection.execute(_SQL["body_locations"], _asked(wanted), binary=True)
    return {message_id: BodyLocation(place) for message_id, place in await cursor.fetchall()}


def _asked(wanted: Sequence[Wanted]) -> dict[str, Any]:
    return {
        "message_ids": uuids([message_id for message_id, _ in wanted]),
        "received_ats": timestamps([received_at for _, received_at in wanted]),
    }


def _read(path: ArchivePath, message_ids: Sequence[UUID]) -> dict[UUID, BodyRecord]:
    try:
        return archived_files().read_bodies(path, message_ids)
    except FileNotFoundError:
        raise ArchiveUnavailableError(f"{path.name} is missing from the archive") from None
    except OSError as error:
        raise ArchiveUnavailableError(f"{path.name} cannot be read: {error.strerror}") from error
    except UnreadableArchiveError as error:
        raise ArchiveUnavailableError(str(error)) from error
