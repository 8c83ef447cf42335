"""Check that the configured folder or bucket is this installation's archive, before anything is
written, dropped or deleted by it.

A volume that is not mounted leaves an empty folder behind, which takes files as the archive would.
So every file that the ledgers name must be there in its full length, and the folder bears a marker
of the installation, written at first use.
"""

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import structlog
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.addons.archive.file_names import LOG_FILES
from statesvc.database.data_dir import sync
from statesvc.database.queries import queries
from statesvc.files.archive_folder import ArchivePath, file_fault, file_sizes
from statesvc.files.object_path import ObjectPath, ObjectStoreError
from statesvc.log.actions import record_action

SQL: Final = queries("statesvc.addons.archive", "archive_identity")
MARKER: Final = "statesvc-archive-"
_MARKER_TEXT: Final = (
    b"The archive of one statesvc installation. Move and back up the folder as a whole, this file"
    b" included.\n"
)
_NAMED_MAX: Final = 3
Connection = AsyncConnection[Any]

log = structlog.get_logger()


class ArchiveRefusedError(RuntimeError):
    """The ledgers name another archive, or this cannot be written: all data stays."""

    @classmethod
    def of(cls, folder: ArchivePath, error: OSError) -> Self:
        return cls(
            str(error)
            if isinstance(error, ObjectStoreError)
            else f"{folder}: {error.strerror or type(error).__name__}"
        )


class ArchivedFile(NamedTuple):
    """A file of a ledger. `size_bytes`: of a month with that of its index."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ArchiveIdentity:
    """Properties of this installation's archive. The connection is in autocommit."""

    connection: Connection
    folder: ArchivePath
    keyring: Keyring

    @property
    def marker(self) -> str:
        """The name of the marker. The digest key never changes."""
        return MARKER + self.keyring.digest(b"archive")[:8].hex()

    async def require(self) -> None:
        """Check the archive's identity. Raises ArchiveRefusedError.

        Marks a folder that is new, or lacks only its marker.
        """
        refusal = await (await self.connection.execute(SQL["sealing_refusal"])).fetchone()
        if refusal is not None:
            raise ArchiveRefusedError(f"the log is not sealed: {refusal[0]}")
        files = await archived_files(self.connection)
        try:
            await asyncio.to_thread(_require, self.folder, self.marker, files)
        except OSError as error:
            raise ArchiveRefusedError.of(self.folder, error) from error

    async def note_refusal(self, error: ArchiveRefusedError) -> None:
        """Store the refusal for `status` and `doctor`."""
        log.error("archive_refused", why=str(error))
        await self.connection.execute(SQL["note_refusal"], {"why": str(error)[:500]})

    async def end_refusal(self) -> None:
        """Note that the identity is confirmed again."""
        await self.connection.execute(SQL["end_refusal"])


def _require(folder: ArchivePath, marker: str, files: list[ArchivedFile]) -> None:
    sizes = file_sizes(folder)
    if sizes and isinstance(folder, Path) and not os.access(folder, os.W_OK | os.X_OK):
        raise ArchiveRefusedError(f"{folder} cannot be written: it is read-only")
    # before the ledgers' files: of another installation's folder it would ask for the volume
    if marker not in sizes and (
        others := sorted(name for name in sizes if name.startswith(MARKER))
    ):
        raise ArchiveRefusedError(
            f"{folder} is the archive of another installation ({others[0]}): use a folder of"
            " its own"
        )
    faults = ledger_faults(files, sizes)
    # all of them missing is a mount point without its volume, and deserves that question
    if faults and not any(file.name in sizes for file in files):
        raise ArchiveRefusedError(
            f"{folder} has none of the {len(files)} files that were archived: is its volume"
            " mounted?"
        )
    if faults:
        shown = "; ".join(f"{name}: {fault}" for name, fault in list(faults.items())[:_NAMED_MAX])
        more = f"; and {len(faults) - _NAMED_MAX} more" if len(faults) > _NAMED_MAX else ""
        raise ArchiveRefusedError(
            f"{folder}, {len(faults)} of {len(files)} files that were archived: {shown}{more}"
        )
    if marker not in sizes:
        _mark(folder, marker)


async def archived_files(connection: Connection) -> list[ArchivedFile]:
    return [
        ArchivedFile(*row)
        for row in await (await connection.execute(SQL["archived_files"])).fetchall()
    ]


def ledger_faults(files: Iterable[ArchivedFile], sizes: Mapping[str, int]) -> dict[str, str]:
    """Return the faults of missing files, and of those of another size, by name.

    `sizes`: those in the folder.
    """
    return {file.name: fault for file in files if (fault := _fault(file, sizes)) is not None}


def _fault(file: ArchivedFile, sizes: Mapping[str, int]) -> str | None:
    names = (
        LOG_FILES.file_names(file.name)
        if file.name.endswith(LOG_FILES.suffixes[0])
        else [file.name]
    )
    missing = [name for name in names if name not in sizes]
    if missing:
        return "it is missing" if missing[0] == file.name else f"{missing[0]} is missing"
    found = sum(sizes[name] for name in names[:2])
    return None if found == file.size_bytes else f"it has {found} bytes, not {file.size_bytes}"


def _mark(folder: ArchivePath, marker: str) -> None:
    if isinstance(folder, ObjectPath):
        (folder / marker).write_bytes(_MARKER_TEXT)
        return
    created = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / marker).write_bytes(_MARKER_TEXT)
    # each new name is durable only with its folder
    for place in (folder / marker, folder, *(place.parent for place in created)):
        sync(place)


class NotLostError(RuntimeError):
    """The file is not archived, or is intact."""


async def give_up(
    connection: AsyncConnection[Any], folder: ArchivePath, file_name: str, *, actor: str, why: str
) -> str:
    """Give up a file without a backup, and return its fault: archiving continues without it.

    Its entries stay unreadable and `verify` names it; if the file turns up, it is read as before.
    Raises NotLostError, OSError.
    """
    row = await (
        await connection.execute(SQL["find_archived"], {"file_name": file_name}, binary=True)
    ).fetchone()
    if row is None:
        raise NotLostError(f"{file_name} is no archived file, or was given up before")
    sha256, size_bytes = row
    sizes = await asyncio.to_thread(file_sizes, folder)
    fault = _fault(ArchivedFile(file_name, size_bytes), sizes)
    # the sizes first: reading a file of gigabytes is needed only where they fit
    fault = fault or await asyncio.to_thread(file_fault, folder / file_name, sha256)
    if fault is None:
        raise NotLostError(f"{file_name} is there as it was written")
    async with connection.transaction():
        for statement in ("give_up_day", "give_up_month"):
            await connection.execute(SQL[statement], {"file_name": file_name})
        await record_action(
            connection,
            actor=actor,
            verb="archive.lost",
            target=f"file {file_name}",
            details={"why": why, "fault": fault},
        )
    return fault
