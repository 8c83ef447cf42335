"""The archive file of a day: sealed bodies in the order of their message ids, with an index.

docs/body-archive.md describes the bytes. All calls block: callers on an event loop use a thread.
"""

import hashlib
import os
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import IO, Final, Self
from uuid import UUID

import orjson

from statesvc.files.archive_folder import ArchivePath
from statesvc.files.body_record import BodyRecord

_BEGIN: Final = b"statesvc-bodies\x01"
_END: Final = b"statesvc-b-end\x01\n"
_HEADER: Final = Struct(">16s10s6x")
# Received (microseconds since 1970), commitment, length of the plain part.
_RECORD: Final = Struct(">q32sH")
# Message id, offset and length of its record, CRC-32 of the record.
_ENTRY: Final = Struct(">16sQII")
# Offset of the index, count of records, SHA-256 of all bytes before this digest, end mark.
_FOOTER: Final = Struct(">QQ32s16s")
_DIGEST_AT: Final = 16
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_CHUNK_BYTES: Final = 1 << 20


class ArchiveFileError(Exception):
    """The file is cut short, altered, or no archive.

    Names a place in the file, never its content.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedFile:
    """A complete file. `sha256` is that of the whole file, as `sha256sum` prints it."""

    size_bytes: int
    sha256: bytes
    records: int


class ArchiveWriter:
    """Writes a file from beginning to end; the index waits in a temporary file next to it."""

    def __init__(self, path: Path, day: date) -> None:
        # exclusive: two archivers must never write one file
        self._file: IO[bytes] = os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
        )
        # closed by __exit__, like the file
        self._index = tempfile.TemporaryFile(dir=path.parent)  # noqa: SIM115
        self._digest = hashlib.sha256()
        self._offset = self._count = 0
        self._last = b""
        self._write(_HEADER.pack(_BEGIN, day.isoformat().encode()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # on a full disk each close fails, for what it still holds in memory
        try:
            self._index.close()
        finally:
            self._file.close()

    def add(self, record: BodyRecord) -> None:
        """Add a record; records come in the order of their ids, each once."""
        # the order is what the binary search of the reader relies on
        if record.message_id.bytes <= self._last:
            raise ValueError("records must be added in the order of their message ids")
        self._last = record.message_id.bytes
        plain = orjson.dumps({"carrier_id": record.carrier_id, "headers": dict(record.headers)})
        data = (
            _RECORD.pack(
                (record.received_at - _EPOCH) // _MICROSECOND, record.commitment, len(plain)
            )
            + plain
            + record.sealed
        )
        self._index.write(_ENTRY.pack(self._last, self._offset, len(data), zlib.crc32(data)))
        self._count += 1
        self._write(data)

    def finish(self) -> FinishedFile:
        """Write index and footer, and wait until the disk has it all."""
        index_at = self._offset
        self._index.seek(0)
        while chunk := self._index.read(_CHUNK_BYTES):
            self._write(chunk)
        self._write(_FOOTER.pack(index_at, self._count, b"", b"")[:_DIGEST_AT])
        # digest and end mark last: a file without them was cut short
        self._write(self._digest.digest() + _END)
        self._file.flush()
        # before the ledger says that it is written: the partition is dropped on its word
        os.fsync(self._file.fileno())
        if hasattr(os, "posix_fadvise"):
            # what is read back for verification should come from the disk
            os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return FinishedFile(
            size_bytes=self._offset, sha256=self._digest.digest(), records=self._count
        )

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self._offset += len(data)


class ArchiveReader:
    """Reads a file: a record by its message id, or all in order. Raises ArchiveFileError."""

    def __init__(self, path: ArchivePath) -> None:
        self._file: IO[bytes] = path.open("rb")
        try:
            self.size_bytes = self._file.seek(0, os.SEEK_END)
            self.day, self._index_at, self.records, self._digest = self._layout()
        # whatever the layout raises, nobody else holds the file yet
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def find(self, message_id: UUID) -> BodyRecord | None:
        """Find a record by binary search in the index: a few short reads, however large the
        file.
        """
        wanted, low, high = message_id.bytes, 0, self.records
        while low < high:
            middle = (low + high) // 2
            if self._entry(middle)[0] < wanted:
                low = middle + 1
            else:
                high = middle
        # the search ends at the place where it would be
        if low == self.records or self._entry(low)[0] != wanted:
            return None
        return self._record(low)

    def __iter__(self) -> Iterator[BodyRecord]:
        return map(self._record, range(self.records))

    def sha256(self) -> bytes:
        """Read the whole file again and return its digest, checked against the stored digest."""
        digest, offset, end = hashlib.sha256(), 0, self.size_bytes - _FOOTER.size + _DIGEST_AT
        while offset < end:
            chunk = self._read(offset, min(_CHUNK_BYTES, end - offset))
            digest.update(chunk)
            offset += len(chunk)
        # the file's own digest first: it tells a changed file from one that the ledger does not
        # mean
        if digest.digest() != self._digest:
            raise ArchiveFileError("its bytes are not those that were written: the digest differs")
        digest.update(self._read(end, self.size_bytes - end))
        return digest.digest()

    def _layout(self) -> tuple[date, int, int, bytes]:
        if self.size_bytes < _HEADER.size + _FOOTER.size:
            raise ArchiveFileError("too short to be an archive")
        begin, day = _HEADER.unpack(self._read(0, _HEADER.size))
        index_at, count, digest, end = _FOOTER.unpack(
            self._read(self.size_bytes - _FOOTER.size, _FOOTER.size)
        )
        if begin != _BEGIN or end != _END:
            raise ArchiveFileError("no archive of bodies, or cut short")
        # before anything is read by these numbers: they may be anyone's
        if index_at + count * _ENTRY.size + _FOOTER.size != self.size_bytes:
            raise ArchiveFileError("its index is not where the footer says")
        try:
            return date.fromisoformat(day.decode()), index_at, count, digest
        except ValueError:
            raise ArchiveFileError("its header names no day") from None

    def _entry(self, index: int) -> tuple[bytes, int, int, int]:
        message_id, offset, length, checksum = _ENTRY.unpack(
            self._read(self._index_at + index * _ENTRY.size, _ENTRY.size)
        )
        return message_id, offset, length, checksum

    def _record(self, index: int) -> BodyRecord:
        message_id, offset, length, checksum = self._entry(index)
        # bounds from the file are not trusted: a changed index must not make us read gigabytes
        data = self._read(offset, length) if offset + length <= self._index_at else b""
        # a checksum a record: one that is read need not cost the digest of the whole file
        if zlib.crc32(data) != checksum or length < _RECORD.size:
            raise ArchiveFileError(f"record {index} was changed")
        received, committed, plain_bytes = _RECORD.unpack_from(data)
        plain = orjson.loads(data[_RECORD.size : _RECORD.size + plain_bytes])
        return BodyRecord(
            message_id=UUID(bytes=message_id),
            received_at=_EPOCH + received * _MICROSECOND,
            carrier_id=plain["carrier_id"],
            commitment=committed,
            headers=plain["headers"],
            sealed=data[_RECORD.size + plain_bytes :],
        )

    def _read(self, offset: int, length: int) -> bytes:
        self._file.seek(offset)
        data = self._file.read(length)
        if len(data) != length:
            raise ArchiveFileError("cut short")
        return data
