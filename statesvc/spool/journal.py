"""An append-only journal in a folder: frames with checksums, in segments that are dropped as a
whole.

A frame is written once the one before is synced. So a damaged frame with a sound one behind it was
acknowledged, and is reported; a damaged end was torn by a crash and never acknowledged. A segment
with a failed write or sync takes no more frames, and no journal continues segments that it found.
"""

import fcntl
import os
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

import structlog

from statesvc.database.data_dir import sync as sync_folder

SEGMENT_BYTES: Final = 64 * 1024 * 1024
# Bounds the time for which a segment's first frame waits for its last to be dropped.
SEGMENT_SECONDS: Final = 600.0
_MAGIC: Final = b"\xd5spl"
_HEAD: Final = struct.Struct(">4sII")
# A place has the number of its segment above the offset in it.
_SHIFT: Final = 40
_LOCK: Final = "lock"
_PATTERN: Final = "*.journal"

_log = structlog.get_logger()


class JournalInUseError(Exception):
    """Another process holds the folder."""


class Journal:
    """The journal of one folder, which it locks. Its calls block.

    `sync` makes a file's bytes durable.
    """

    def __init__(
        self,
        folder: Path,
        *,
        sync: Callable[[int], None] = os.fdatasync,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        """Open, and make the folder if there is none. Raises JournalInUseError and OSError."""
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True)
            sync_folder(folder.parent)
        self.folder = folder
        self._sync = sync
        self._segment_bytes = segment_bytes
        self._lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise JournalInUseError(str(folder)) from None
        self._ends = {int(path.stem): path.stat().st_size for path in folder.glob(_PATTERN)}
        """Durable bytes by segment."""
        self._last = max(self._ends, default=0)
        self._begun_at = 0.0
        self._open: int | None = None

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(self._ends.values())

    def append(self, payload: bytes) -> int:
        """Append a frame; return the place behind it. Durable when it returns. Raises OSError."""
        frame = _HEAD.pack(_MAGIC, len(payload), zlib.crc32(payload)) + payload
        written = 0
        try:
            if (
                self._open is None
                or self._ends[self._last] >= self._segment_bytes
                or time.monotonic() - self._begun_at >= SEGMENT_SECONDS
            ):
                self._begin()
            assert self._open is not None  # noqa: S101 - just begun
            while written < len(frame):
                written += os.write(self._open, frame[written:])
            self._sync(self._open)
        except OSError:
            # after a failed sync nobody knows which bytes are durable
            self._end_segment()
            raise
        self._ends[self._last] += len(frame)
        return self._last << _SHIFT | self._ends[self._last]

    def read(self, place: int) -> tuple[bytes, int] | None:
        """Return the next sound frame behind the place, and the place behind it; None: the end."""
        first, offset = divmod(place, 1 << _SHIFT)
        for number in sorted(self._ends):
            if number < first:
                continue
            with self._path(number).open("rb") as file:
                file.seek(offset if number == first else 0)
                if (payload := _sound_frame(file, self._ends[number])) is not None:
                    return payload, number << _SHIFT | file.tell()
        return None

    def drop_before(self, place: int) -> None:
        """Remove segments without a sound frame behind the place."""
        following = self.read(place)
        kept = self._last + 1 if following is None else following[1] >> _SHIFT
        for number in sorted(self._ends):
            if number >= kept:
                return
            if number == self._last:
                self._end_segment()
            self._path(number).unlink(missing_ok=True)
            del self._ends[number]

    def close(self) -> None:
        """Close, and free the folder. Safe to call twice."""
        self._end_segment()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def remove(self) -> None:
        """Remove the folder with its files, and close."""
        for path in self.folder.iterdir():
            path.unlink(missing_ok=True)
        self.folder.rmdir()
        self.close()

    def _begin(self) -> None:
        self._end_segment()
        number = self._last + 1
        self._open = os.open(self._path(number), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._last, self._begun_at = number, time.monotonic()
        self._ends[number] = 0
        sync_folder(self.folder)

    def _end_segment(self) -> None:
        if self._open is not None:
            os.close(self._open)
            self._open = None

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08}.journal"


def _sound_frame(file: BinaryIO, end: int) -> bytes | None:
    """Return the next sound frame before the end, and leave the file behind it; None: only a torn
    end is left.
    """
    began = offset = file.tell()
    while offset + _HEAD.size <= end:
        file.seek(offset)
        magic, length, checksum = _HEAD.unpack(file.read(_HEAD.size))
        if magic == _MAGIC and offset + _HEAD.size + length <= end:
            payload = file.read(length)
            if zlib.crc32(payload) == checksum:
                if offset > began:
                    _log.error("spool_damaged", files=file.name, bytes=began)
                return payload
        file.seek(offset + 1)
        skipped = file.read().find(_MAGIC)
        offset = end if skipped < 0 else offset + 1 + skipped
    return None
