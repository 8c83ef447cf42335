"""Check that each shipment's versions ascend with the index.

An event does not name the position of its predecessor, which may be months earlier. So while the
log is read, the places of the sealed events are written to a file, 28 bytes each, and sorted at the
end in portions of a bounded size. The file is kept beside that of the progress, so that a stopped
run continues with it.
"""

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from io import SEEK_END
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final, NamedTuple
from uuid import UUID

from statesvc.addons.verify.event_ids import EventIds
from statesvc.addons.verify.fault import LogFault

# Shipment, version, index: in this order they sort as bytes.
_PLACE: Final = Struct(">16sIQ")
_SHIPMENT: Final = slice(0, 16)
_INDEX: Final = slice(20, 28)
PORTION_BYTES: Final = 32 * 1024 * 1024
_READ_BYTES: Final = _PLACE.size * 65_536
# By the first byte of the shipment's id.
_PARTS_MAX: Final = 256


def positions_of(events: Iterable[tuple[int, EventIds]], first_index: int) -> bytes:
    """Return the records of events, each with its ordinal from an index on and in that order,
    without those not of their shipment.

    Of versions that follow one another only the first and the last count: no other
    version belongs between them.
    """
    places = bytearray()
    shipment_id, version, place, is_written = "", 0, 0, True
    for ordinal, ids in events:
        # an event that names another shipment would look like an inversion there
        if ids.fault is not None:
            continue
        follows = ids.version == version + 1 and ids.shipment_id == shipment_id
        if not (follows or is_written):
            places += _record(shipment_id, version, place)
        shipment_id, version, place, is_written = (
            ids.shipment_id,
            ids.version,
            first_index + ordinal,
            not follows,
        )
        if is_written:
            places += _record(shipment_id, version, place)
    return bytes(places if is_written else places + _record(shipment_id, version, place))


def _record(shipment_id: str, version: int, index: int) -> bytes:
    return _PLACE.pack(bytes.fromhex(shipment_id.replace("-", "")), version, index)


def positions_by_bucket(places: bytes | bytearray, buckets: int) -> Iterator[tuple[int, bytes]]:
    """Yield the records of each bucket of shipments."""
    found: dict[int, list[bytes]] = defaultdict(list)
    for place in _records(bytes(places)):
        found[int.from_bytes(place[:4]) * buckets >> 32].append(place)
    for bucket, together in found.items():
        yield bucket, b"".join(together)


def inverted_records(places: bytes) -> bytes:
    """Return the records at inversions, which alone have the inversions of them all."""
    kept: dict[bytes, None] = {}
    for before, after in _inversions(_records(places)):
        kept.update({before: None, after: None})
    return b"".join(kept)


def _inversions(places: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    for before, after in pairwise(sorted(places)):
        # big-endian bytes compare as the numbers that they are
        if after[_INDEX] < before[_INDEX] and after[_SHIPMENT] == before[_SHIPMENT]:
            yield before, after


def _records(content: bytes) -> list[bytes]:
    return [content[at : at + _PLACE.size] for at in range(0, len(content), _PLACE.size)]


class Inversion(NamedTuple):
    late_index: int
    next_index: int
    fault: LogFault


class VersionOrder:
    """The places that were read so far. `path` None: in a file that goes with the process."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def resume(self, size: int) -> bool:
        """Resume after the first `size` bytes; False: they are not there."""
        if size == 0:
            return True
        if self._path is None or not self._path.exists() or self._path.stat().st_size < size:
            return False
        self._file = self._path.open("r+b")
        # what was written after the saved state is read again, and must not be there twice
        self._file.truncate(size)
        self._file.seek(size)
        return True

    def add(self, places: bytes | bytearray) -> None:
        if self._file is None:
            # open for as long as the run: `close` ends it
            self._file = tempfile.TemporaryFile() if self._path is None else self._path.open("w+b")  # noqa: SIM115
        self._file.write(places)

    def flushed(self) -> int:
        """Return how many bytes are in the file."""
        if self._file is None:
            return 0
        self._file.flush()
        return self._file.seek(0, SEEK_END)

    def inverted(self) -> Iterator[Inversion]:
        """Yield the versions that stand before the one that precedes them."""
        for places in self._portions():
            for before, after in _inversions(places):
                shipment_id, version, index = _PLACE.unpack(before)
                _, next_version, next_index = _PLACE.unpack(after)
                row = f"shipment_id={UUID(bytes=shipment_id)} version={version}"
                why = f"is sealed at index {index}, after version {next_version} at {next_index}"
                yield Inversion(index, next_index, LogFault("event", row, "version", why))

    def close(self) -> None:
        """Close the file; it stays for a run that goes on."""
        if self._file is not None:
            self._file.close()

    def discard(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _portions(self) -> Iterator[list[bytes]]:
        """Yield the records, all of a shipment together."""
        size = self.flushed()
        if self._file is None:
            return
        # by shipment id, so that all versions of a shipment are sorted together
        count = min(_PARTS_MAX, -(-size // PORTION_BYTES))
        if count <= 1:
            yield [place for chunk in _chunks(self._file) for place in chunk]
            return
        with tempfile.TemporaryDirectory() as folder:
            parts = [(Path(folder) / str(part)).open("w+b") for part in range(count)]
            for chunk in _chunks(self._file):
                for place in chunk:
                    parts[place[0] * count // _PARTS_MAX].write(place)
            for part in parts:
                yield [place for chunk in _chunks(part) for place in chunk]
                part.close()


def _chunks(file: BinaryIO) -> Iterator[list[bytes]]:
    file.seek(0)
    while content := file.read(_READ_BYTES):
        yield _records(content)
