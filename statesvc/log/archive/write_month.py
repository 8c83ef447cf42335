"""A month of the log into its files."""

import asyncio
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection

from events.merkle.node import Range
from events.merkle.retained_nodes import kept_ranges, range_root
from statesvc.log.archive.entry_file import EntryFileWriter
from statesvc.log.archive.file_names import digest_of, index_of, unfinished
from statesvc.log.archive.month import Extent, stretches
from statesvc.log.archive.month_ledger import Written
from statesvc.log.archive.shipment_index import ShipmentIndexWriter
from statesvc.log.archive.tree_cover import CHECKPOINT, TREE, Runs, Surroundings
from statesvc.log.tree_nodes import read_kept


async def write_month(connection: AsyncConnection[Any], folder: Path, begin: str, extent: Extent) -> Written:
    """Writes and publishes the files, whose names begin with `begin`."""
    runs, index = Runs(), ShipmentIndexWriter()
    month = str(extent.month)
    with unfinished(folder, begin) as files:
        writer = EntryFileWriter(files.entries, {b"statesvc.month": month.encode(), CHECKPOINT: extent.head.note.encode()})
        try:
            async for entries in stretches(connection, extent):
                await asyncio.to_thread(writer.write, entries)
                index.add(entries)
                runs.add(entry.index for entry in entries)
            surroundings = await _surroundings(connection, runs, extent.head.tree_size)
            writer.add_metadata({TREE: surroundings.metadata()})
        finally:
            await asyncio.to_thread(writer.close)
        await asyncio.to_thread(index.write, files.index)
        path = await asyncio.to_thread(files.publish, extent.head.note)
    return Written(
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


async def _surroundings(connection: AsyncConnection[Any], runs: Runs, size: int) -> Surroundings:
    nodes = [node for outside in runs.outside(size) for node in outside.nodes()]
    ranges = [Range(node.position << node.level, (node.position + 1) << node.level) for node in nodes]
    kept = await read_kept(connection, kept_ranges(ranges))
    return Surroundings(size, {node: range_root(each, kept) for node, each in zip(nodes, ranges, strict=True)})
