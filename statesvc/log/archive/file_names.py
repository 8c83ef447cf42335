"""The names of the files, in the folder that bodies are archived in too. A month has three: entries, index by shipment, signed head.

They appear under their names only when they are complete and on the disk, the entries last. The names end in the digest of the entries,
so no process can replace what another one wrote, and bear the mark of the installation, like those of bodies.
"""

import hashlib
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from events.crypto.keyring import Keyring
from statesvc.log.archive.folder import sync
from statesvc.log.archive.month_ledger import Month

ENTRIES: Final = ".parquet"
_INDEX: Final = ".shipments.parquet"
_CHECKPOINT: Final = ".checkpoint"
_NAME: Final = re.compile(r"(log-\d{4}-\d\d-[0-9a-f]{8})-[0-9a-f]{16}(\.parquet|\.shipments\.parquet|\.checkpoint)(\.[0-9a-f]{8})?")


def month_name(keyring: Keyring, month: Month) -> str:
    """What the files of this month and this installation begin with."""
    return f"log-{month}-{keyring.digest(b'log archive')[:4].hex()}"


def index_of(entries: Path) -> Path:
    """The index by shipment that belongs to a file of entries."""
    return entries.with_name(entries.name.removesuffix(ENTRIES) + _INDEX)


def checkpoint_of(entries: Path) -> Path:
    """The signed head that covers a file of entries."""
    return entries.with_name(entries.name.removesuffix(ENTRIES) + _CHECKPOINT)


class Unfinished:
    """Files that are being written: `entries` and `index` by the caller."""

    def __init__(self, folder: Path, begin: str) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder, self._begin = folder, begin
        ending = secrets.token_hex(4)
        blank = f"{begin}-{'0' * 16}"
        self.entries, self.index, self._checkpoint = (folder / f"{blank}{kind}.{ending}" for kind in (ENTRIES, _INDEX, _CHECKPOINT))

    def publish(self, note: str) -> Path:
        """Gives the complete files their names, for good; answers that of the entries."""
        self._checkpoint.write_text(note, "utf-8")
        for path in (self.entries, self.index, self._checkpoint):
            path.chmod(0o400)
            sync(path)
        name = self._folder / f"{self._begin}-{digest_of(self.entries)[:8].hex()}{ENTRIES}"
        self.index.rename(index_of(name))
        self._checkpoint.rename(checkpoint_of(name))
        self.entries.rename(name)
        sync(self._folder)
        return name

    def discard(self) -> None:
        """Removes what was not published."""
        for path in (self.entries, self.index, self._checkpoint):
            path.unlink(missing_ok=True)


@contextmanager
def unfinished(folder: Path, begin: str) -> Iterator[Unfinished]:
    """Files whose names begin so, for the time of the block; gone afterwards unless they were published."""
    files = Unfinished(folder, begin)
    try:
        yield files
    finally:
        files.discard()


def leftovers(folder: Path, begin: str, *, keep: str | None) -> list[Path]:
    """What a crash left of this month (`begin`) beside the files that count (`keep`: the entries')."""
    if not folder.is_dir():
        return []
    retained = set() if keep is None else {keep, index_of(Path(keep)).name, checkpoint_of(Path(keep)).name}
    return [
        path
        for path in folder.iterdir()
        if path.name not in retained and (named := _NAME.fullmatch(path.name)) is not None and named[1] == begin
    ]


def digest_of(path: Path) -> bytes:
    """SHA-256 of the whole file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def fault_of(path: Path, sha256: bytes | None) -> str | None:
    """What is wrong with the file as a whole, in plain words; None: it is as it was written."""
    try:
        return None if digest_of(path) == sha256 else "its bytes are not those that were written (SHA-256)"
    except FileNotFoundError:
        return "it is missing"
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
