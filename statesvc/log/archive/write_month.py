"""A month of the log into its files."""

import asyncio
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection

from events.merkle.node import LeafRange
from events.merkle.retained_nodes import range_root, retained_ranges
from statesvc.log.archive.entry_file import EntryFileWriter
from statesvc.log.archive.file_names import digest_of, index_of, unfinished
from statesvc.log.archive.month import MonthExtent, entry_ranges
from statesvc.log.archive.month_ledger import WrittenMonth
from statesvc.log.archive.shipment_index import ShipmentIndexWriter
from statesvc.log.archive.tree_cover import CHECKPOINT, TREE, IndexRanges, TreeCover
from statesvc.log.tree_nodes import read_retained


async def write_month(connection: AsyncConnection[Any], folder: Path, begin: str, extent: MonthExtent) -> WrittenMonth:
    """Writes and publishes the files, whose names begin with `begin`."""
    runs, index = IndexRanges(), ShipmentIndexWriter()
    month = str(extent.month)
    with unfinished(folder, begin) as files:
        writer = EntryFileWriter(files.entries, {b"statesvc.month": month.encode(), CHECKPOINT: extent.head.note.encode()})
        try:
            async for entries in entry_ranges(connection, extent):
                await asyncio.to_thread(writer.write, entries)
                index.add(entries)
                runs.add(entry.index for entry in entries)
            cover = await _tree_cover(connection, runs, extent.head.tree_size)
            writer.add_metadata({TREE: cover.metadata()})
        finally:
            await asyncio.to_thread(writer.close)
        await asyncio.to_thread(index.write, files.index)
        path = await asyncio.to_thread(files.publish, extent.head.note)
    return WrittenMonth(
        file_name=path.name,
        sha256=await asyncio.to_thread(digest_of, path),
        index_sha256=await asyncio.to_thread(digest_of, index_of(path)),
        size_bytes=path.stat().st_size + index_of(path).stat().st_size,
        tree_size=extent.head.tree_size,
        first_index=runs.ranges[0].begin,
        last_index=runs.ranges[-1].end - 1,
        first_batch=extent.first_batch,
        last_batch=extent.last_batch,
        counts=extent.counts,
    )


async def _tree_cover(connection: AsyncConnection[Any], runs: IndexRanges, size: int) -> TreeCover:
    nodes = [node for outside in runs.outside(size) for node in outside.nodes()]
    ranges = [LeafRange(node.position << node.level, (node.position + 1) << node.level) for node in nodes]
    retained = await read_retained(connection, retained_ranges(ranges))
    return TreeCover(size, {node: range_root(each, retained) for node, each in zip(nodes, ranges, strict=True)})
