"""The one folder of all archive files, of bodies and of the log: how they are called, how they appear, whether they are as written.

A file appears under its name only when it is complete and on the disk. The name ends in its digest, so a process that lost the lead
without knowing can never replace the file that another one wrote; and it bears the mark of its installation, so that two that share a
folder by mistake leave each other's files alone.
"""

import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from events.crypto.keyring import Keyring
from events.entry import FIRST_EPOCH
from statesvc.settings.service_settings import Settings


def archive_folder(settings: Settings) -> Path | None:
    """Where archives are; None: bodies stay in the database. With DATABASE_URL there is no default: other machines must see it too."""
    if settings.archive.dir is not None:
        return settings.archive.dir
    return settings.database.data_dir / "archive" if settings.database.database_url is None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveNames:
    """How the files of one archive are called. `suffixes`: those of the files of one period; the first one's file leads to the others."""

    subject: str
    mark: bytes
    suffixes: tuple[str, ...]

    def prefix(self, keyring: Keyring, period: str, *, epoch: int) -> str:
        """What the files of a period, this installation and this epoch of the log begin with. The digest key never changes.

        After a restore the files of the epoch before stay: they may hold what the database has lost.
        """
        of_epoch = "" if epoch == FIRST_EPOCH else f"e{epoch}-"
        return f"{self.subject}-{period}-{of_epoch}{keyring.digest(self.mark)[:4].hex()}"

    def file_name(self, prefix: str, sha256: bytes) -> str:
        """The name of a complete file."""
        return f"{prefix}-{sha256[:8].hex()}{self.suffixes[0]}"

    def file_names(self, file_name: str) -> list[str]:
        """Of all files of the period, `file_name` first."""
        return [file_name.removesuffix(self.suffixes[0]) + suffix for suffix in self.suffixes]

    @contextmanager
    def unfinished(self, folder: Path, prefix: str) -> Iterator["UnfinishedFiles"]:
        """Files whose names begin so, for the time of the block; gone afterwards unless they were published."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        files = UnfinishedFiles(self, folder, prefix)
        try:
            yield files
        finally:
            for path in files.paths:
                path.unlink(missing_ok=True)

    def leftovers(self, folder: Path, prefix: str, *, retained: str | None) -> list[Path]:
        """What a crash left of this period next to the files that count (`retained` leads to them)."""
        if not folder.is_dir():
            return []
        counted = set() if retained is None else set(self.file_names(retained))
        suffixes = "|".join(map(re.escape, self.suffixes))
        own = re.compile(rf"{re.escape(prefix)}-[0-9a-f]{{16}}({suffixes})(\.[0-9a-f]{{8}})?")
        return [path for path in folder.iterdir() if path.name not in counted and own.fullmatch(path.name)]


class UnfinishedFiles:
    """Files that are being written: `paths` in the order of the suffixes."""

    def __init__(self, names: ArchiveNames, folder: Path, prefix: str) -> None:
        ending = secrets.token_hex(4)
        self._names, self._folder, self._prefix = names, folder, prefix
        self.paths = [folder / f"{name}.{ending}" for name in names.file_names(names.file_name(prefix, bytes(8)))]

    def publish(self, sha256: bytes) -> str:
        """Gives the complete files their names, for good, that of the first one last; answers it. `sha256`: the first one's."""
        for path in self.paths:
            sync(path)
        file_name = self._names.file_name(self._prefix, sha256)
        for path, name in reversed(list(zip(self.paths, self._names.file_names(file_name), strict=True))):
            path.rename(self._folder / name)
        sync(self._folder)
        return file_name


def remove(path: Path) -> None:
    """For good; a file that is gone already is fine."""
    path.unlink(missing_ok=True)
    if path.parent.is_dir():
        sync(path.parent)


def sync(path: Path) -> None:
    """Makes a file durable, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest_of(path: Path) -> bytes:
    """SHA-256 of the whole file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def file_fault(path: Path, sha256: bytes | None) -> str | None:
    """What is wrong with the file as a whole, in plain words; None: it is as it was written. Reads all of it."""
    try:
        return None if digest_of(path) == sha256 else "its bytes are not those that were written: the digest differs (SHA-256)"
    except FileNotFoundError:
        return "it is missing"
    except OSError as error:
        return f"it cannot be read ({error.strerror})"


def size_fault(path: Path, size_bytes: int) -> str | None:
    """The same without reading it: whether it is there and as long as it was."""
    try:
        found = path.stat().st_size
    except FileNotFoundError:
        return "it is missing"
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    return None if found == size_bytes else f"it has {found} bytes, not {size_bytes}"
