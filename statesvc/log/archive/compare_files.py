"""Reading the files back: each row is the database's, each hash is that of its bytes, and all together have the signed root."""

import asyncio
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from statesvc.log.archive.entry_file import EntryFile
from statesvc.log.archive.entry_row import LogEntry
from statesvc.log.archive.file_names import fault_of, index_of
from statesvc.log.archive.log_archive_errors import NotSoundError
from statesvc.log.archive.month import MonthExtent, entry_ranges
from statesvc.log.archive.shipment_index import rows_about
from statesvc.log.archive.tree_cover import CHECKPOINT, TREE, TreeCover

_SAMPLE = 50
"""Shipments of a range that are looked up in the index."""


async def compare_month(connection: AsyncConnection[Any], path: Path, extent: MonthExtent, *, sha256: bytes, index_sha256: bytes) -> int:
    """How many entries the file holds. Raises NotSoundError, EntryFileError."""
    for each, digest in ((path, sha256), (index_of(path), index_sha256)):
        fault = await asyncio.to_thread(fault_of, each, digest)
        if fault is not None:
            raise NotSoundError(f"{each.name}: {fault}")
    with await asyncio.to_thread(EntryFile, path) as file:
        found = (entry for group in file.groups for entry in file.group(group))
        compared = 0
        async for entries in entry_ranges(connection, extent):
            written = await asyncio.to_thread(_some, found, len(entries))
            if written != entries:
                raise NotSoundError(f"{path.name}: {_difference(entries, written)}")
            await asyncio.to_thread(_compare_index, path, entries, compared)
            compared += len(entries)
        if next(found, None) is not None:
            raise NotSoundError(f"{path.name}: it has more entries than the month")
        if compared != sum(extent.counts.values()):
            raise NotSoundError(f"{path.name}: the month has {sum(extent.counts.values())} entries, {compared} stand in the signed log")
        await asyncio.to_thread(_root, file, extent)
    return compared


def prove(file: EntryFile, root: bytes) -> bool:
    """Whether the file's leaves and the rest of the tree that it names have this root. Raises EntryFileError, ValueError."""
    cover = TreeCover.parse(file.metadata[TREE])
    return cover.root((entry.index, entry.leaf_hash) for group in file.groups for entry in file.group(group)) == root


def _root(file: EntryFile, extent: MonthExtent) -> None:
    if file.metadata.get(CHECKPOINT) != extent.head.note.encode():
        raise NotSoundError(f"{file.name}: it names another checkpoint")
    try:
        proven = prove(file, extent.head.root)
    except (ValueError, KeyError, TypeError) as error:
        raise NotSoundError(f"{file.name}: the tree around it cannot be read") from error
    if not proven:
        raise NotSoundError(f"{file.name}: its entries do not have the root that the checkpoint at {extent.head.tree_size} signs")


def _some(entries: Iterator[LogEntry], count: int) -> list[LogEntry]:
    return list(islice(entries, count))


def _difference(expected: list[LogEntry], written: list[LogEntry]) -> str:
    for mine, other in zip(expected, written, strict=False):
        if mine != other:
            return f"entry {mine.index} is not that of the database"
    return f"entry {expected[min(len(expected), len(written)) - 1].index} is the last one, others are missing"


def _compare_index(path: Path, entries: list[LogEntry], begin: int) -> None:
    """The index finds what is there: by some shipments of each range."""
    wanted: dict[UUID, set[int]] = {}
    for row, entry in enumerate(entries, start=begin):
        for shipment_id in entry.shipments():
            try:
                shipment = UUID(shipment_id)
            except ValueError:
                continue
            if shipment in wanted or len(wanted) < _SAMPLE:
                wanted.setdefault(shipment, set()).add(row)
    rows = {row for row in rows_about(index_of(path), wanted) if begin <= row < begin + len(entries)}
    if rows != set().union(*wanted.values()):
        raise NotSoundError(f"{index_of(path).name}: it does not lead to all entries of a shipment")
