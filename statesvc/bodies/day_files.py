"""The files of archived days. A file appears under its name only when it is complete and on the disk.

Its name ends in its digest, so a process that lost the lead without knowing can never replace the file that another one wrote; and it
bears the mark of its installation, so that two that share a folder by mistake leave each other's files alone.
"""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Final

from events.crypto.keyring import Keyring
from statesvc.bodies.archive_file import ArchiveWriter, FinishedFile
from statesvc.log.archive.folder import sync

_NAME: Final = re.compile(r"(bodies-\d{4}-\d\d-\d\d-[0-9a-f]{8})-[0-9a-f]{16}\.ssb(\.[0-9a-f]{8})?")
"""The day's own part, the digest, and an ending while it is not finished."""


def day_name(keyring: Keyring, day: date) -> str:
    """What the files of this day and this installation begin with. The digest key is made once and never changes."""
    return f"bodies-{day.isoformat()}-{keyring.digest(b'body archive')[:4].hex()}"


def file_name(begin: str, sha256: bytes) -> str:
    """The name of a complete file."""
    return f"{begin}-{sha256[:8].hex()}.ssb"


class Unfinished:
    """A file that is being written."""

    def __init__(self, folder: Path, begin: str, day: date) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder, self._begin = folder, begin
        self._path = folder / f"{file_name(begin, bytes(8))}.{secrets.token_hex(4)}"
        self.writer = ArchiveWriter(self._path, day)

    def publish(self) -> tuple[str, FinishedFile]:
        """Gives the complete file its name, for good."""
        finished = self.writer.finish()
        name = file_name(self._begin, finished.sha256)
        self._path.rename(self._folder / name)
        sync(self._folder)
        return name, finished

    def discard(self) -> None:
        """Removes what was not published."""
        self._path.unlink(missing_ok=True)


@contextmanager
def unfinished(folder: Path, begin: str, day: date) -> Iterator[Unfinished]:
    """A file whose name begins so, for the time of the block; gone afterwards unless it was published."""
    file = Unfinished(folder, begin, day)
    try:
        with file.writer:
            yield file
    finally:
        file.discard()


def leftovers(folder: Path, begin: str, *, keep: str | None) -> list[Path]:
    """What a crash left of this day (`begin`) beside the file that counts."""
    if not folder.is_dir():
        return []
    return [
        path for path in folder.iterdir() if path.name != keep and (named := _NAME.fullmatch(path.name)) is not None and named[1] == begin
    ]
