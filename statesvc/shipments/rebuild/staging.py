"""Archived events for a rebuild, sorted into a file for each part of the key space.

The files of a month are in the order of the log, where a shipment's events lie scattered; reading
them for each slice would take as many times as long. The folder is temporary and as sensitive as
the archive.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias
from uuid import UUID

from statesvc.files.archive_folder import ArchivePath
from statesvc.log.archived_files import archived_files

_KEYS: Final = 2**128
# Approximate size of an event on disk.
EVENT_BYTES: Final = 1500
# Events of a slice, which a process holds in memory at once: about 10 MB.
SLICE_EVENTS: Final = 8_000
SLICES_MAX: Final = 65_536


@dataclass(frozen=True, slots=True)
class Slice:
    """All shipments from `first` to `last`, both included."""

    first: UUID
    last: UUID


def slices(log_bytes: int) -> list[Slice]:
    """Divide the whole key space into as many slices as a log of that size is worth."""
    count = min(SLICES_MAX, max(1, log_bytes // (EVENT_BYTES * SLICE_EVENTS)))
    return [slice_at(place, count) for place in range(count)]


def slice_at(place: int, count: int) -> Slice:
    """Return the slice of the ids for which `place_of` returns this place."""
    # rounded up: the first id at or after the bound
    first, after = (-(-_KEYS * bound // count) for bound in (place, place + 1))
    return Slice(UUID(int=first), UUID(int=after - 1))


def place_of(shipment: UUID, count: int) -> int:
    return shipment.int * count // _KEYS


BUCKETS_MAX: Final = 4_096
_HEAD: Final = Struct("!16sII")
# Shipment, version, canonical bytes.
Event: TypeAlias = tuple[UUID, int, bytes]


@dataclass(frozen=True, slots=True)
class Staging:
    """The sorted events. Any process may read it."""

    folder: Path
    buckets: int

    def events(self, piece: Slice) -> Iterator[Event]:
        """Yield the events of a slice, in no order."""
        for bucket in range(
            place_of(piece.first, self.buckets), place_of(piece.last, self.buckets) + 1
        ):
            path = self._path(bucket)
            if path.exists():
                yield from unpacked(path.read_bytes(), piece)

    def add(self, path: ArchivePath) -> None:
        """Sort in the events of a month's file. Raises UnreadableArchiveError."""
        with archived_files().open_file(path) as file:
            for events in file.histories():
                for bucket, content in packed(events, self.buckets):
                    # opened for each portion: thousands of buckets are more files than a process
                    # may hold open
                    with self._path(bucket).open("ab") as target:
                        target.write(content)

    def _path(self, bucket: int) -> Path:
        return self.folder / f"{bucket}"


@contextmanager
def staged(files: Iterable[ArchivePath], *, pieces: int) -> Iterator[Staging]:
    """Stage the events of these months, for the time of the block."""
    with TemporaryDirectory(prefix="statesvc-rebuild-") as folder:
        staging = Staging(Path(folder), min(BUCKETS_MAX, pieces))
        for path in files:
            staging.add(path)
        yield staging


def packed(events: Iterable[tuple[str, int, bytes]], buckets: int) -> Iterator[tuple[int, bytes]]:
    """Yield the events of each bucket of the key space."""
    found: dict[int, list[bytes]] = defaultdict(list)
    for shipment_id, version, canonical in events:
        shipment = UUID(shipment_id)
        found[place_of(shipment, buckets)] += (
            _HEAD.pack(shipment.bytes, version, len(canonical)),
            canonical,
        )
    for bucket, contents in found.items():
        yield bucket, b"".join(contents)


def unpacked(content: bytes, piece: Slice) -> Iterator[Event]:
    """Yield the events of a slice from those of a bucket."""
    place = 0
    while place < len(content):
        shipment, version, length = _HEAD.unpack_from(content, place)
        place += _HEAD.size
        if piece.first.bytes <= shipment <= piece.last.bytes:
            yield UUID(bytes=shipment), version, content[place : place + length]
        place += length


def merged(hot: Iterable[Event], archived: Iterable[Event]) -> list[tuple[UUID, bytes]]:
    """Merge shipment by shipment, oldest first; duplicates count once."""
    # the same entry has the same bytes in both; an observation has the version of an event
    by_place = {
        (shipment.int, version, canonical): (shipment, canonical)
        for shipment, version, canonical in archived
    }
    by_place.update(
        {
            (shipment.int, version, canonical): (shipment, canonical)
            for shipment, version, canonical in hot
        }
    )
    return [by_place[place] for place in sorted(by_place)]
