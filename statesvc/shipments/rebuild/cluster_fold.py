"""The comparison on a cluster: each archived event goes to the slice of its shipment."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

from statesvc.files.archive_folder import ArchivePath
from statesvc.log.archived_files import archived_files
from statesvc.log.cluster import Cluster
from statesvc.shipments.rebuild.drift import Drift
from statesvc.shipments.rebuild.folding import compare_slice
from statesvc.shipments.rebuild.keyspace import slice_at
from statesvc.shipments.rebuild.staging import packed, unpacked

# Groups of a file that are read at once: half a million entries.
GROUPS: Final = 64


def compare_on_cluster(
    cluster: Cluster, files: Sequence[ArchivePath], slices: int
) -> Iterator[tuple[int, list[Drift]]]:
    # some groups a call, not a file: files of months are of very different sizes
    calls = [(path, first, slices) for path in files for first in range(0, _groups(path), GROUPS)]
    return cluster.shuffled(_spread, calls, slices, partial(_fold, slices))


def _groups(path: ArchivePath) -> int:
    with archived_files().open_file(path) as file:
        return len(file.groups)


def _spread(path: ArchivePath, first: int, slices: int) -> Iterator[tuple[int, bytes]]:
    with archived_files().open_file(path) as file:
        for events in file.histories(first, first + GROUPS):
            yield from packed(events, slices)


def _fold(slices: int, place: int, contents: list[bytes]) -> tuple[int, list[Drift]]:
    piece = slice_at(place, slices)
    archived = chain.from_iterable(unpacked(content, piece) for content in contents)
    return compare_slice(piece, archived)
