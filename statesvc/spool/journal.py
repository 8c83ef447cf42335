"""An append-only journal in a file: frames with checksums.

A frame is written once the one before is synced. So a damaged frame with a sound one behind it was
acknowledged, and is reported; a damaged end was torn by a crash and never acknowledged. Nobody
continues a journal with a failed write or sync, unless it is empty, nor one that was found.
"""

import fcntl
import os
import secrets
import struct
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Self

import structlog

from statesvc.database.data_dir import sync as sync_folder

SUFFIX: Final = ".journal"
_MAGIC: Final = b"\xd5spl"
_HEAD: Final = struct.Struct(">4sIII")

_log = structlog.get_logger()


class JournalFrame(NamedTuple):
    """`end`: the place behind it. `total`: messages of the journal up to there."""

    payload: bytes
    end: int
    total: int


class Journal:
    """A file that this process locks. Its calls block. A place is an offset.

    `sync` makes a file's bytes durable.
    """

    def __init__(
        self, path: Path, *, is_new: bool = False, sync: Callable[[int], None] = os.fdatasync
    ) -> None:
        """Open it. Raises OSError, BlockingIOError where another process has it."""
        self.path = path
        self._sync = sync
        self._file = os.open(path, os.O_RDWR | (os.O_CREAT if is_new else 0), 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # whoever had it may have removed it
            if not path.exists():
                raise BlockingIOError  # noqa: TRY301 - closed below
        except BlockingIOError:
            self.close()
            raise
        self.size, self.total = os.fstat(self._file).st_size, 0
        end = 0
        while (frame := self.read(end)) is not None:
            end, self.total = frame.end, frame.total
        # without a torn end
        self.size = end

    @classmethod
    def begin(cls, folder: Path, *, sync: Callable[[int], None] = os.fdatasync) -> Self:
        """Begin a journal; the names of later ones are greater. Raises OSError."""
        while True:
            path = folder / f"{time.time_ns():020}-{secrets.token_hex(4)}{SUFFIX}"
            # another process may take an empty one for that of a dead process, and remove it
            with suppress(BlockingIOError):
                return cls(path, is_new=True, sync=sync)

    def append(self, payload: bytes, messages: int) -> None:
        """Append a frame. Durable when it returns.

        Raises OSError, after which it takes no more, unless it is empty: nobody knows which bytes
        are durable.
        """
        if not self.size:
            # no byte of a failed first frame is built upon
            os.ftruncate(self._file, 0)
        total = self.total + messages
        frame = _HEAD.pack(_MAGIC, len(payload), zlib.crc32(payload), total) + payload
        written = 0
        while written < len(frame):
            written += os.pwrite(self._file, frame[written:], self.size + written)
        self._sync(self._file)
        if not self.size:
            sync_folder(self.path.parent)
        self.size, self.total = self.size + len(frame), total

    def read(self, place: int) -> JournalFrame | None:
        """Return the next sound frame behind the place; None: the end."""
        with self.path.open("rb") as file:
            file.seek(place)
            return _sound_frame(file, self.size)

    def close(self) -> None:
        """Close it, for another process to open. Safe to call twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def remove(self) -> None:
        """Remove the file, then close: nobody can open it in between."""
        self.path.unlink(missing_ok=True)
        self.close()


def _sound_frame(file: BinaryIO, end: int) -> JournalFrame | None:
    """Return the next sound frame before the end; None: only a torn end is left."""
    began = offset = file.tell()
    while offset + _HEAD.size <= end:
        file.seek(offset)
        magic, length, checksum, total = _HEAD.unpack(file.read(_HEAD.size))
        if magic == _MAGIC and offset + _HEAD.size + length <= end:
            payload = file.read(length)
            if zlib.crc32(payload) == checksum:
                if offset > began:
                    _log.error("spool_damaged", files=file.name, bytes=began)
                return JournalFrame(payload, file.tell(), total)
        file.seek(offset + 1)
        skipped = file.read().find(_MAGIC)
        offset = end if skipped < 0 else offset + 1 + skipped
    return None
