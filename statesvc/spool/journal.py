"""An append-only journal in a folder: frames with checksums, in segments that are dropped as a
whole.

A frame is written once the one before is synced. So a damaged frame with a sound one behind it was
acknowledged, and is reported; a damaged end was torn by a crash and never acknowledged. A segment
with a failed write or sync takes no more frames, and no journal continues segments that it found.
"""

import fcntl
import io
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, Self

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
        self._reported: set[int] = set()

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(self._ends.values())

    def append(self, payload: bytes) -> int:
        """Append a frame; return the place behind it. Durable when it returns. Raises OSError."""
        if (
            self._open is None
            or self._ends[self._last] >= self._segment_bytes
            or time.monotonic() - self._begun_at >= SEGMENT_SECONDS
        ):
            self._begin()
        assert self._open is not None  # noqa: S101 - just begun
        offset = self._ends[self._last]
        frame = memoryview(_framed(payload))
        try:
            while frame:
                frame = frame[os.write(self._open, frame) :]
            self._sync(self._open)
        except OSError:
            # after a failed sync nobody knows which bytes are durable
            self._end_segment()
            raise
        self._ends[self._last] = os.lseek(self._open, 0, os.SEEK_CUR)
        assert self._ends[self._last] == offset + _HEAD.size + len(payload)  # noqa: S101 - its writer is alone
        return self._last << _SHIFT | self._ends[self._last]

    def read(self, place: int) -> tuple[bytes, int] | None:
        """Return the next sound frame behind the place, and the place behind it; None: the end."""
        for number in sorted(self._ends):
            if number < place >> _SHIFT:
                continue
            offset = place & (1 << _SHIFT) - 1 if number == place >> _SHIFT else 0
            for payload, end in self._frames(number, offset):
                return payload, number << _SHIFT | end
        return None

    def drop_before(self, place: int) -> None:
        """Remove segments without a frame behind the place."""
        for number in sorted(self._ends):
            if number << _SHIFT | self._ends[number] > place:
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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

    def _frames(self, number: int, offset: int) -> Iterator[tuple[bytes, int]]:
        with self._path(number).open("rb") as file:
            while offset < self._ends[number]:
                file.seek(offset)
                payload = _intact_payload(file)
                if payload is not None:
                    offset += _HEAD.size + len(payload)
                    yield payload, offset
                    continue
                behind = self._sound_behind(number, offset)
                if (place := number << _SHIFT | offset) not in self._reported:
                    self._reported.add(place)
                    event = "spool_end_torn" if behind is None else "spool_damaged"
                    _log.error(event, files=self._path(number).name, bytes=offset)
                if behind is None:
                    return
                offset = behind

    def _sound_behind(self, number: int, offset: int) -> int | None:
        data = self._path(number).read_bytes()[: self._ends[number]]
        while (offset := data.find(_MAGIC, offset + 1)) >= 0:
            if _intact_payload(io.BytesIO(data[offset:])) is not None:
                return offset
        return None


def _framed(payload: bytes) -> bytes:
    return _HEAD.pack(_MAGIC, len(payload), zlib.crc32(payload)) + payload


def _intact_payload(file: BinaryIO) -> bytes | None:
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    magic, length, checksum = _HEAD.unpack(head)
    if magic != _MAGIC:
        return None
    payload = file.read(length)
    return payload if len(payload) == length and zlib.crc32(payload) == checksum else None
