"""A month of the log into its files, and the files read back.

Each row must be the database's, each hash that of its bytes, and all together must have the signed
root.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Self
from uuid import UUID

import orjson
from psycopg import AsyncConnection

from events.merkle.compact_range import CompactRange
from events.merkle.node import LeafRange, Node
from events.merkle.retained_nodes import range_roots, retained_ranges
from statesvc.addons.archive.archive_pass import NotVerifiedError
from statesvc.addons.archive.entry_file import EntryFile, EntryFileWriter
from statesvc.addons.archive.file_names import LOG_FILES, index_of
from statesvc.addons.archive.month import MonthExtent, WrittenMonth, entry_ranges
from statesvc.addons.archive.shipment_index import ShipmentIndexWriter, rows_about
from statesvc.files.archive_folder import ArchivePath, digest_of
from statesvc.log.entry_row import LogEntry
from statesvc.log.tree_nodes import read_retained

CHECKPOINT: Final = b"statesvc.checkpoint"
TREE: Final = b"statesvc.tree"


class IndexRanges:
    """The indexes of a file as they come, gathered to ranges without a hole."""

    def __init__(self) -> None:
        self.ranges: list[LeafRange] = []

    def add(self, indexes: Iterable[int]) -> None:
        for index in indexes:
            if self.ranges and self.ranges[-1].end == index:
                self.ranges[-1] = LeafRange(self.ranges[-1].begin, index + 1)
            else:
                self.ranges.append(LeafRange(index, index + 1))

    def outside(self, size: int) -> list[LeafRange]:
        """Return the leaves of a tree of this size that are not here."""
        ends = [0, *(run.end for run in self.ranges)]
        begins = [*(run.begin for run in self.ranges), size]
        return [
            LeafRange(end, begin) for end, begin in zip(ends, begins, strict=True) if end < begin
        ]


@dataclass(frozen=True, slots=True)
class TreeCover:
    """The tree of `size` leaves around a file: perfect subtrees and their roots, from left to
    right.
    """

    size: int
    roots: Mapping[Node, bytes]

    def metadata(self) -> bytes:
        return orjson.dumps(
            {
                "size": self.size,
                "nodes": [
                    [node.level, node.position, root.hex()] for node, root in self.roots.items()
                ],
            }
        )

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Parse the footer. Raises ValueError, KeyError or TypeError for other content."""
        document = orjson.loads(text)
        return cls(
            document["size"],
            {
                Node(level, position): bytes.fromhex(root)
                for level, position, root in document["nodes"]
            },
        )

    def root(self, leaves: Iterable[tuple[int, bytes]]) -> bytes:
        """Compute the root of the whole tree, with the file's leaf hashes by index, ascending.

        Raises ValueError where they do not fill it.
        """
        tree = CompactRange()
        gaps: Iterator[tuple[int, bytes]] = (
            (node.level, root) for node, root in self.roots.items()
        )
        begins = {node.position << node.level for node in self.roots}
        for index, leaf_hash in leaves:
            # gaps are filled by the roots of the tree around the file, so its leaves alone give the
            # signed root
            while tree.size < index and tree.size in begins:
                tree.append_subtree(*next(gaps))
            if tree.size != index:
                raise ValueError(f"nothing says what stands at index {tree.size}")
            tree.extend([leaf_hash])
        for level, root in gaps:
            tree.append_subtree(level, root)
        if tree.size != self.size:
            raise ValueError(f"the tree has {self.size} leaves, {tree.size} are known")
        return tree.root()


# Shipments of a range that are looked up in the index.
_SAMPLE: Final = 50


async def write_month(
    connection: AsyncConnection[Any], folder: ArchivePath, prefix: str, extent: MonthExtent
) -> WrittenMonth:
    """Write and publish the files, with names that begin with `prefix`."""
    runs, index = IndexRanges(), ShipmentIndexWriter()
    month = str(extent.month)
    with LOG_FILES.unfinished(folder, prefix) as files:
        entries_path, index_path, checkpoint_path = files.paths
        writer = EntryFileWriter(
            entries_path, {b"statesvc.month": month.encode(), CHECKPOINT: extent.head.note.encode()}
        )
        try:
            async for entries in entry_ranges(connection, extent):
                await asyncio.to_thread(writer.write, entries)
                index.add(entries)
                runs.add(entry.index for entry in entries)
            cover = await _tree_cover(connection, runs, extent.head.tree_size)
            writer.add_metadata({TREE: cover.metadata()})
        finally:
            await asyncio.to_thread(writer.close)
        await asyncio.to_thread(index.write, index_path)
        checkpoint_path.write_text(extent.head.note, "utf-8")
        for path in files.paths:
            # read-only before they get their names: nobody must change what was digested
            path.chmod(0o400)
        sha256, index_sha256 = [
            await asyncio.to_thread(digest_of, path) for path in (entries_path, index_path)
        ]
        size_bytes = entries_path.stat().st_size + index_path.stat().st_size
        # last: a file under its name is whole
        file_name = await asyncio.to_thread(files.publish, sha256)
    return WrittenMonth(
        file_name=file_name,
        sha256=sha256,
        index_sha256=index_sha256,
        size_bytes=size_bytes,
        tree_size=extent.head.tree_size,
        first_index=runs.ranges[0].begin,
        last_index=runs.ranges[-1].end - 1,
        first_batch=extent.first_batch,
        last_batch=extent.last_batch,
        counts=extent.counts,
    )


async def _tree_cover(connection: AsyncConnection[Any], runs: IndexRanges, size: int) -> TreeCover:
    nodes = [node for outside in runs.outside(size) for node in outside.nodes()]
    ranges = [
        LeafRange(node.position << node.level, (node.position + 1) << node.level) for node in nodes
    ]
    retained = await read_retained(connection, retained_ranges(ranges))
    return TreeCover(size, dict(zip(nodes, range_roots(ranges, retained), strict=True)))


async def compare_month(
    connection: AsyncConnection[Any], path: ArchivePath, extent: MonthExtent
) -> int:
    """Compare the file with the database; return how many entries it holds.

    Raises NotVerifiedError, EntryFileError.
    """
    with await asyncio.to_thread(EntryFile, path) as file:
        found = (entry for group in file.groups for entry in file.group(group))
        compared = 0
        async for entries in entry_ranges(connection, extent):
            written = await asyncio.to_thread(_some, found, len(entries))
            # row by row, not by a digest: what the writer forgot, both would lack
            if written != entries:
                raise NotVerifiedError(f"{path.name}: {_difference(entries, written)}")
            await asyncio.to_thread(_compare_index, path, entries, compared)
            compared += len(entries)
        if await asyncio.to_thread(next, found, None) is not None:
            raise NotVerifiedError(f"{path.name}: it has more entries than the month")
        if compared != sum(extent.counts.values()):
            raise NotVerifiedError(
                f"{path.name}: the month has {sum(extent.counts.values())} entries, {compared}"
                " stand in the signed log"
            )
        # the rows were compared with the database; only the signed root says that the database is
        # right
        await asyncio.to_thread(_root, file, extent)
    return compared


def prove(file: EntryFile, root: bytes) -> bool:
    """Return whether the file's leaves and the rest of the tree that it names have this root.

    Raises EntryFileError, ValueError.
    """
    cover = TreeCover.parse(file.metadata[TREE])
    return (
        cover.root(
            (entry.index, entry.leaf_hash) for group in file.groups for entry in file.group(group)
        )
        == root
    )


def _root(file: EntryFile, extent: MonthExtent) -> None:
    if file.metadata.get(CHECKPOINT) != extent.head.note.encode():
        raise NotVerifiedError(f"{file.name}: it names another checkpoint")
    try:
        proven = prove(file, extent.head.root)
    except (ValueError, KeyError, TypeError) as error:
        raise NotVerifiedError(f"{file.name}: the tree around it cannot be read") from error
    if not proven:
        raise NotVerifiedError(
            f"{file.name}: its entries do not have the root that the checkpoint at"
            f" {extent.head.tree_size} signs"
        )


def _some(entries: Iterator[LogEntry], count: int) -> list[LogEntry]:
    return list(islice(entries, count))


def _difference(expected: list[LogEntry], written: list[LogEntry]) -> str:
    for mine, other in zip(expected, written, strict=False):
        if mine != other:
            return f"entry {mine.index} is not that of the database"
    return (
        f"entry {expected[min(len(expected), len(written)) - 1].index} is the last one, others are"
        " missing"
    )


def _compare_index(path: ArchivePath, entries: list[LogEntry], begin: int) -> None:
    """Check the index by some shipments of each range."""
    wanted: dict[UUID, set[int]] = {}
    for row, entry in enumerate(entries, start=begin):
        for shipment_id in entry.shipments():
            try:
                shipment = UUID(shipment_id)
            except ValueError:
                continue
            if shipment in wanted or len(wanted) < _SAMPLE:
                wanted.setdefault(shipment, set()).add(row)
    rows = {
        row for row in rows_about(index_of(path), wanted) if begin <= row < begin + len(entries)
    }
    if rows != set().union(*wanted.values()):
        raise NotVerifiedError(
            f"{index_of(path).name}: it does not lead to all entries of a shipment"
        )
