"""Giving up an archived file without a backup: archiving continues without it.

Its entries stay unreadable and `verify` names it; if the file turns up, it is read as before.
"""

import asyncio
from typing import Any

from psycopg import AsyncConnection

from statesvc.addons.archive.archive_identity import ArchivedFile, file_of_ledger_fault
from statesvc.database.queries import queries
from statesvc.files.archive_folder import ArchivePath, file_fault, file_sizes
from statesvc.log.actions import record_action

_SQL = queries("statesvc.addons.archive", "lost_files")


class NotLostError(RuntimeError):
    """The file is not archived, or is intact."""


async def give_up(
    connection: AsyncConnection[Any], folder: ArchivePath, file_name: str, *, actor: str, why: str
) -> str:
    """Give up the file, and return its fault. Raises NotLostError, OSError."""
    row = await (
        await connection.execute(_SQL["find_archived"], {"file_name": file_name}, binary=True)
    ).fetchone()
    if row is None:
        raise NotLostError(f"{file_name} is no archived file, or was given up before")
    sha256, size_bytes = row
    sizes = await asyncio.to_thread(file_sizes, folder)
    fault = file_of_ledger_fault(ArchivedFile(file_name, size_bytes), sizes)
    fault = fault or await asyncio.to_thread(file_fault, folder / file_name, sha256)
    if fault is None:
        raise NotLostError(f"{file_name} is there as it was written")
    async with connection.transaction():
        for statement in ("give_up_day", "give_up_month"):
            await connection.execute(_SQL[statement], {"file_name": file_name})
        await record_action(
            connection,
            actor=actor,
            verb="archive.lost",
            target=f"file {file_name}",
            details={"why": why, "fault": fault},
        )
    return fault
