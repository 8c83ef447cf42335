"""Index of a month's file by shipment: a second Parquet file; a lookup reads one row group.

A bloom filter in the file would only name the row groups that may hold a shipment, and a busy
shipment is in many.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from statesvc.addons.archive.entry_file import BROKEN
from statesvc.files.archive_errors import EntryFileError
from statesvc.files.archive_folder import ArchivePath, parquet_source
from statesvc.files.object_path import ObjectStoreError
from statesvc.log.entry_row import LogEntry

GROUP_ROWS: Final = 16_384
_SCHEMA: Final = pa.schema([("shipment_id", pa.binary(16)), ("row", pa.int32())])


class ShipmentIndexWriter:
    """Gathers 20 bytes for each entry of a shipment, and writes them sorted at the end."""

    def __init__(self) -> None:
        self._chunks: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, entries: Iterable[LogEntry]) -> None:
        """Add the next entries of the file, in its order."""
        shipments: list[bytes] = []
        rows: list[int] = []
        for entry in entries:
            for shipment_id in entry.shipments():
                try:
                    shipments.append(UUID(shipment_id).bytes)
                except ValueError:
                    # an operator's own words after "shipment "
                    continue
                rows.append(self._rows)
            # also for an entry about no shipment: it is the row of the file, not of the index
            self._rows += 1
        self._chunks.append(
            pa.record_batch(
                [pa.array(shipments, pa.binary(16)), pa.array(rows, pa.int32())], schema=_SCHEMA
            )
        )

    def write(self, path: Path) -> None:
        table = pa.Table.from_batches(self._chunks, schema=_SCHEMA)
        table = table.take(
            pc.sort_indices(table, sort_keys=[("shipment_id", "ascending"), ("row", "ascending")])
        )
        pq.write_table(
            table,
            path,
            compression="zstd",
            row_group_size=GROUP_ROWS,
            use_dictionary=False,
            write_statistics=["shipment_id"],
            write_page_checksum=True,
            sorting_columns=[pq.SortingColumn(0), pq.SortingColumn(1)],
        )


def rows_about(path: ArchivePath, shipments: Iterable[UUID]) -> list[int]:
    """Return the rows of all entries about these shipments, ascending. Raises `EntryFileError`."""
    wanted = sorted({shipment.bytes for shipment in shipments})
    found: set[int] = set()
    try:
        with pq.ParquetFile(parquet_source(path), page_checksum_verification=True) as file:
            for number in range(file.metadata.num_row_groups):
                # without bounds: AttributeError
                bounds = file.metadata.row_group(number).column(0).statistics
                here = [each for each in wanted if bounds.min <= each <= bounds.max]
                if here:
                    group = file.read_row_group(number, use_threads=False)
                    mask = pc.is_in(group["shipment_id"], value_set=pa.array(here, pa.binary(16)))
                    found.update(group["row"].filter(mask).to_pylist())
    except FileNotFoundError:
        raise EntryFileError(path.name, "the whole file", "it is missing") from None
    except ObjectStoreError:
        raise
    except BROKEN as error:
        raise EntryFileError(path.name, "some of its pages", "they were changed") from error
    return sorted(found)
