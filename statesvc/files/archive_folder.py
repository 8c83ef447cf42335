"""The folder of all archive files, of bodies and of the log: their names, publication and checks.

A file appears under its name only when it is complete and on the disk. The name ends in its digest,
so a process that lost the lead without knowing can never replace another's file; and it bears the
mark of its installation, so that two that share a folder by mistake leave each other's files alone.

The place is a folder, or a prefix in an object store; for a store a file is written to this machine
first, and uploaded whole.
"""

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, TypeAlias

from events.crypto.keyring import Keyring
from events.entry.kinds import FIRST_EPOCH
from statesvc.database.data_dir import sync
from statesvc.files.object_path import ObjectPath, ObjectStoreError
from statesvc.settings.bucket import Bucket
from statesvc.settings.service_settings import Settings

# The folder of an archive, or a file in it.
ArchivePath: TypeAlias = Path | ObjectPath
_CHUNK_BYTES: Final = 8 << 20


def archive_folder(settings: Settings) -> ArchivePath | None:
    """Return where archives are; None: bodies stay in the database.

    With DATABASE_URL there is no default: other machines must see it too.
    """
    if settings.archive.dir is not None:
        return archive_at(settings.archive.dir)
    return (
        settings.database.data_dir / "archive" if settings.database.database_url is None else None
    )


def archive_at(place: str) -> ArchivePath:
    """Parse a folder, or `s3://bucket/prefix`. Raises ValueError for anything else."""
    return ObjectPath(Bucket.parse(place)) if "://" in place else Path(place)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveNames:
    """Names of an archive's files.

    `suffixes`: those of the files of a period; the first file leads to the others.
    """

    subject: str
    mark: bytes
    suffixes: tuple[str, ...]

    def prefix(self, keyring: Keyring, period: str, *, epoch: int) -> str:
        """Return the prefix of the files of a period, this installation and this epoch of the log.

        The digest key never changes. After a restore the files of the epoch before stay:
        they may hold data that the database has lost.
        """
        of_epoch = "" if epoch == FIRST_EPOCH else f"e{epoch}-"
        return f"{self.subject}-{period}-{of_epoch}{keyring.digest(self.mark)[:4].hex()}"

    def file_name(self, prefix: str, sha256: bytes) -> str:
        return f"{prefix}-{sha256[:8].hex()}{self.suffixes[0]}"

    def file_names(self, file_name: str) -> list[str]:
        """Return the names of all files of the period, `file_name` first."""
        return [file_name.removesuffix(self.suffixes[0]) + suffix for suffix in self.suffixes]

    @contextmanager
    def unfinished(self, folder: ArchivePath, prefix: str) -> Iterator["UnfinishedFiles"]:
        """Provide files with this prefix for the time of the block.

        They are deleted afterwards unless they were published.
        """
        writing_folder(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        files = UnfinishedFiles(self, folder, prefix)
        try:
            yield files
        finally:
            for path in files.paths:
                path.unlink(missing_ok=True)

    def leftovers(
        self, folder: ArchivePath, prefix: str, *, retained: str | None
    ) -> list[ArchivePath]:
        """Return files of this period that a crash left beside the valid ones.

        `retained` leads to the valid files.
        """
        there: list[ArchivePath] = [
            path for place in {folder, writing_folder(folder)} for path in files_of(place)
        ]
        counted = set() if retained is None else set(self.file_names(retained))
        suffixes = "|".join(map(re.escape, self.suffixes))
        own = re.compile(rf"{re.escape(prefix)}-[0-9a-f]{{16}}({suffixes})(\.[0-9a-f]{{8}})?")
        return [path for path in there if path.name not in counted and own.fullmatch(path.name)]


class UnfinishedFiles:
    """Files that are being written: `paths` in the order of the suffixes."""

    def __init__(self, names: ArchiveNames, folder: ArchivePath, prefix: str) -> None:
        ending = secrets.token_hex(4)
        self._names, self._folder, self._prefix = names, folder, prefix
        self.paths = [
            writing_folder(folder) / f"{name}.{ending}"
            for name in names.file_names(names.file_name(prefix, bytes(8)))
        ]

    def publish(self, sha256: bytes) -> str:
        """Give the complete files their final names, the first file's last; return that name.

        `sha256`: the first file's.
        """
        file_name = self._names.file_name(self._prefix, sha256)
        named = list(zip(self.paths, self._names.file_names(file_name), strict=True))
        if isinstance(self._folder, ObjectPath):
            for path, name in reversed(named):
                (self._folder / name).upload(path)
            return file_name
        for path in self.paths:
            sync(path)
        for path, name in reversed(named):
            path.rename(self._folder / name)
        sync(self._folder)
        return file_name


def writing_folder(folder: ArchivePath) -> Path:
    """Return the folder for files that have no final name yet.

    Raises PermissionError where others may write into it.
    """
    if isinstance(folder, Path):
        return folder
    of_place = hashlib.sha256(repr(folder).encode()).hexdigest()[:8]
    own = Path(tempfile.gettempdir()) / f"statesvc-archive-{os.getuid()}-{of_place}"
    own.mkdir(mode=0o700, exist_ok=True)
    found = own.lstat()
    if (
        not stat.S_ISDIR(found.st_mode)
        or found.st_uid != os.getuid()
        or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    ):
        raise PermissionError(
            errno.EPERM, "others may write into the folder of unfinished archive files", str(own)
        )
    return own


def files_of(folder: ArchivePath) -> Iterator[ArchivePath]:
    """Yield all files of the folder; none where it does not exist yet."""
    if isinstance(folder, ObjectPath) or folder.is_dir():
        yield from folder.iterdir()


def file_sizes(folder: ArchivePath) -> dict[str, int]:
    """Return the length in bytes of each file of the folder by its name.

    Empty where the folder does not exist yet.
    """
    if isinstance(folder, ObjectPath):
        return folder.sizes()
    sizes = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    sizes[entry.name] = entry.stat().st_size
    except FileNotFoundError:
        return {}
    return sizes


def remove(path: ArchivePath) -> None:
    if isinstance(path, ObjectPath):
        path.delete()
        return
    path.unlink(missing_ok=True)
    if path.parent.is_dir():
        sync(path.parent)


def digest_of(path: ArchivePath) -> bytes:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.digest()


def read_back(path: ArchivePath) -> bytes:
    """Compute SHA-256 of a file that is durable, and so is its name: read from the
    disk, not from memory.
    """
    if isinstance(path, Path):
        sync(path)
        sync(path.parent)
        if hasattr(os, "posix_fadvise"):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
    return digest_of(path)


def version_of(path: ArchivePath) -> tuple[object, ...]:
    """Return a value that changes when the file is replaced or its volume is another.

    The content is not read.
    """
    if isinstance(path, ObjectPath):
        return path.version()
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def parquet_source(path: ArchivePath) -> Path | IO[bytes]:
    return path.open() if isinstance(path, ObjectPath) else path


def file_fault(path: ArchivePath, sha256: bytes | None) -> str | None:
    """Return the fault of the file as a whole, in plain words; None: it is as it was written.

    Reads all of it. Raises ObjectStoreError, which has no details of the file.
    """
    try:
        return (
            None
            if digest_of(path) == sha256
            else "its bytes are not those that were written: the digest differs (SHA-256)"
        )
    except FileNotFoundError:
        return "it is missing"
    except ObjectStoreError:
        raise
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
