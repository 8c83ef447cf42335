"""A month's entries as a Parquet file, sorted by log index; any Parquet reader understands it.

Row groups are ranges of the log, so few are read for a page of it. Every page has a checksum, every
entry its leaf hash: a changed file is refused with the place of the change.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import groupby, repeat
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from statesvc.files.archive_errors import EntryFileError
from statesvc.files.archive_folder import ArchivePath, parquet_source
from statesvc.files.object_path import ObjectStoreError
from statesvc.log.entry_kinds import ENTRY_KINDS, KINDS_BY_NAME
from statesvc.log.entry_row import TIMES, LogEntry

FORMAT: Final = b"1"
COMPRESSION_LEVEL: Final = 9
# Errors of pyarrow for a file that was changed.
BROKEN: Final = (
    pa.ArrowException,
    OSError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    OverflowError,
)
_INTEGERS: Final = frozenset({"version", "sequence", "number"})
_FLAGS: Final = frozenset({"by_category", "replayed"})
_OWN: Final = (
    ("log_index", pa.int64()),
    ("entry", pa.string()),
    ("batch_id", pa.int64()),
    ("ordinal", pa.int32()),
    ("leaf_hash", pa.binary(32)),
    ("canonical", pa.binary()),
    ("sealed_part", pa.binary()),
)
_READ: Final = tuple(name for name, _ in _OWN if name != "entry")
_INDEX: Final = attrgetter("index")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The columns of all kinds; a kind leaves those of the others empty.
_BOUND: Final = tuple(dict.fromkeys(name for kind in ENTRY_KINDS for name in kind.file_columns))


def _type(name: str) -> pa.DataType:
    if name in TIMES:
        return pa.timestamp("us", tz="UTC")
    if name in _INTEGERS:
        return pa.int32()
    return pa.bool_() if name in _FLAGS else pa.string()


SCHEMA: Final = pa.schema([*_OWN, *((name, _type(name)) for name in _BOUND)])
_COLUMNS_OF: Final = {
    kind.name: [
        kind.file_columns.index(name) if name in kind.file_columns else None for name in _BOUND
    ]
    for kind in ENTRY_KINDS
}


class EntryFileWriter:
    """Writes the file in row groups. The caller gives the entries in the order of their indexes."""

    def __init__(self, path: Path, metadata: Mapping[bytes, bytes]) -> None:
        self._writer = pq.ParquetWriter(
            path,
            SCHEMA.with_metadata({b"statesvc.format": FORMAT, **metadata}),
            compression="zstd",
            compression_level=COMPRESSION_LEVEL,
            # not of hashes and times, which hardly repeat
            use_dictionary=["entry", *(name for name in _BOUND if name not in TIMES)],
            # of these alone: readers choose row groups by them, and statistics of texts would be in
            # clear in the footer
            write_statistics=["log_index", "batch_id"],
            write_page_checksum=True,
            sorting_columns=[pq.SortingColumn(0)],
            store_schema=True,
        )

    def write(self, entries: Sequence[LogEntry]) -> None:
        self._writer.write_table(_table(entries), row_group_size=max(1, len(entries)))

    def add_metadata(self, metadata: Mapping[bytes, bytes]) -> None:
        """Add late metadata to the footer."""
        self._writer.add_key_value_metadata(dict(metadata))

    def close(self) -> None:
        self._writer.close()


def _table(entries: Sequence[LogEntry]) -> pa.Table:
    columns: list[Sequence[Any]] = [
        [entry.index for entry in entries],
        [entry.kind.name for entry in entries],
        [entry.batch_id for entry in entries],
        [entry.ordinal for entry in entries],
        [entry.leaf_hash for entry in entries],
        [entry.canonical for entry in entries],
        [entry.sealed_part for entry in entries],
    ]
    for column in range(len(_BOUND)):
        at = {name: columns_of[column] for name, columns_of in _COLUMNS_OF.items()}
        columns.append(
            [
                None if (own := at[entry.kind.name]) is None else entry.values[own]
                for entry in entries
            ]
        )
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)],
        schema=SCHEMA,
    )


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group: the entries from `first` to `last`, of batches within these bounds; `begin` is
    the place of its first row.
    """

    number: int
    begin: int
    rows: int
    first: int
    last: int
    first_batch: int
    last_batch: int

    def __str__(self) -> str:
        return f"entries {self.first} to {self.last}"


class EntryFile:
    """An open file.

    Whatever it cannot give as it was written raises `EntryFileError`, which names the place.
    """

    def __init__(self, path: ArchivePath) -> None:
        self.name = path.name
        self._last: tuple[int, list[LogEntry]] | None = None
        try:
            self._file = pq.ParquetFile(parquet_source(path), page_checksum_verification=True)
        except FileNotFoundError:
            raise EntryFileError(path.name, "the whole file", "it is missing") from None
        except ObjectStoreError:
            raise
        except BROKEN as error:
            raise EntryFileError(
                path.name, "the footer, without which no entry can be read", "it was changed"
            ) from error
        try:
            self.groups = list(self._groups())
        except BROKEN as error:
            self._file.close()
            raise EntryFileError(
                path.name, "the schema or the statistics in the footer", "they were changed"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        """Metadata of the footer: the signed head, the month, the tree around its entries."""
        found: dict[bytes, bytes] = dict(self._file.metadata.metadata or {})
        return found

    def between(self, begin: int, end: int) -> Iterator[LogEntry]:
        """Yield the entries from index `begin` up to but not including `end` that are here."""
        for group in self.groups:
            if group.first < end and group.last >= begin:
                yield from (entry for entry in self.group(group) if begin <= entry.index < end)

    def of_batches(self, low: int, high: int) -> Iterator[LogEntry]:
        """Yield the entries of the batches from `low` up to but not including `high`."""
        for group in self.groups:
            if group.first_batch < high and group.last_batch >= low:
                yield from (entry for entry in self.group(group) if low <= entry.batch_id < high)

    def at(self, rows: Iterable[int]) -> Iterator[LogEntry]:
        """Yield the entries in these rows of the file (`rows` ascending)."""
        begins = iter(self.groups)
        group = next(begins, None)

        def number(row: int) -> int:
            nonlocal group
            while group is not None and row >= group.begin + group.rows:
                group = next(begins, None)
            if group is None:
                raise EntryFileError(self.name, f"row {row}", "it is not there")
            return group.number

        for found, asked in groupby(rows, key=number):
            entries = self.group(self.groups[found])
            yield from (entries[row - self.groups[found].begin] for row in asked)

    def spoken_of(self, since: datetime, until: datetime) -> set[str]:
        """Return the shipments of events that were recorded from `since` up to but
        not including `until`.
        """
        found: set[str] = set()
        for group in self.groups:
            table = self._table(group, ["entry", "shipment_id", "recorded_at"])
            inside = pc.and_(
                pc.greater_equal(table["recorded_at"], since), pc.less(table["recorded_at"], until)
            )
            found.update(
                table["shipment_id"]
                .filter(pc.and_(inside, pc.equal(table["entry"], "event")))
                .to_pylist()
            )
        return found

    def index_of(self, carrier_id: str, event_id: str) -> int | None:
        for group in self.groups:
            table = self._table(group, ["log_index", "entry", "carrier_id", "event_id"])
            asked = pc.and_(
                pc.equal(table["event_id"], event_id), pc.equal(table["carrier_id"], carrier_id)
            )
            found = (
                table["log_index"]
                .filter(pc.and_(asked, pc.equal(table["entry"], "event")))
                .to_pylist()
            )
            if found:
                return int(found[0])
        return None

    def histories(
        self, first: int = 0, after: int | None = None
    ) -> Iterator[list[tuple[str, int, bytes]]]:
        """Yield shipment, version and canonical bytes of events and observations, each checked
        against its leaf hash; one list a row group, from the group `first` on.

        Without observations of numbers that are no shipments.
        """
        for group in self.groups[first:after]:
            table = self._table(
                group, ["log_index", "entry", "shipment_id", "version", "canonical", "leaf_hash"]
            )
            table = table.filter(pc.greater(table["version"], 0))
            indexes, _, shipments, versions, canonicals, hashes = (
                column.to_pylist() for column in table.columns
            )
            for index, canonical, leaf_hash in zip(indexes, canonicals, hashes, strict=True):
                if sha256(b"\x00" + canonical).digest() != leaf_hash:
                    raise EntryFileError(
                        self.name, f"entry {index}", "it is not what its leaf hash is of"
                    )
            yield list(zip(shipments, versions, canonicals, strict=True))

    def group(self, group: RowGroup) -> list[LogEntry]:
        """Return all checked entries of a row group. The last group is cached."""
        if self._last is None or self._last[0] != group.number:
            # pages of the log ask for the same group again and again
            self._last = (group.number, self._read(group))
        return self._last[1]

    def _read(self, group: RowGroup) -> list[LogEntry]:
        try:
            entries = _entries(self._table(group, SCHEMA.names))
        except ObjectStoreError:
            raise
        except BROKEN as error:
            raise EntryFileError(self.name, str(group), "their pages were changed") from error
        for entry in entries:
            if not entry.sound or not group.first <= entry.index <= group.last:
                raise EntryFileError(
                    self.name, f"entry {entry.index}", "it is not what its leaf hash is of"
                )
        # an entry of an unknown kind is left out above, and must not go unnoticed
        if len(entries) != group.rows:
            raise EntryFileError(
                self.name, str(group), f"{len(entries)} entries are there, not {group.rows}"
            )
        return entries

    def _table(self, group: RowGroup, columns: Sequence[str]) -> pa.Table:
        try:
            return self._file.read_row_group(
                group.number, columns=list(columns), use_threads=False
            ).select(list(columns))
        except ObjectStoreError:
            raise
        except BROKEN as error:
            raise EntryFileError(self.name, str(group), "their pages were changed") from error

    def _groups(self) -> Iterator[RowGroup]:
        if not self._file.schema_arrow.equals(SCHEMA):
            raise ValueError("none of a format that is known here")
        begin, before = 0, -1
        for number in range(self._file.metadata.num_row_groups):
            metadata = self._file.metadata.row_group(number)
            index, batch = metadata.column(0).statistics, metadata.column(2).statistics
            if (
                index is None
                or batch is None
                or not before < index.min <= index.max
                or metadata.num_rows < 1
            ):
                raise ValueError("a row group without the bounds of its entries")
            yield RowGroup(
                number, begin, metadata.num_rows, index.min, index.max, batch.min, batch.max
            )
            begin, before = begin + metadata.num_rows, index.max


def _entries(table: pa.Table) -> list[LogEntry]:
    """Read entries by index; an unknown kind is left out, and the counts then differ."""
    entries: list[LogEntry] = []
    for name, kind in KINDS_BY_NAME.items():
        part = table.filter(pc.equal(table["entry"], name))
        if part.num_rows:
            own = [_values(part[column]) for column in _READ]
            values = zip(*(_values(part[column]) for column in kind.file_columns), strict=True)
            entries += map(LogEntry, own[0], repeat(kind), *own[1:], values)
    entries.sort(key=_INDEX)
    return entries


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        return [
            None if at is None else _EPOCH + timedelta(microseconds=at)
            for at in column.cast(pa.int64()).to_pylist()
        ]
    found: list[Any] = column.to_pylist()
    return found
