"""Queries of the files, as plain functions that any process can run. pyarrow is imported
with the first question.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from statesvc.addons.archive.archive_file import ArchiveFileError, ArchiveReader
from statesvc.addons.archive.file_names import checkpoint_of, index_of
from statesvc.files.archive_errors import NoParquetError, UnreadableArchiveError
from statesvc.files.archive_folder import ArchivePath, file_fault
from statesvc.files.body_record import BodyRecord
from statesvc.log.archived_files import EntriesByKind, FileQuery
from statesvc.log.entry_row import LogEntry
from statesvc.log.log_months import LogMonth

if TYPE_CHECKING:
    from statesvc.addons.archive.entry_file import EntryFile


def open_file(path: ArchivePath) -> "EntryFile":
    """Open a file. Raises NoParquetError, EntryFileError."""
    try:
        # 40 MB that most processes never need
        from statesvc.addons.archive.entry_file import EntryFile  # noqa: PLC0415
    except ImportError as error:
        raise NoParquetError from error
    return EntryFile(path)


def of_shipments(asked: Sequence[FileQuery]) -> EntriesByKind:
    found: EntriesByKind = defaultdict(list)
    for one in asked:
        with open_file(one.path) as file:
            # as above
            from statesvc.addons.archive.shipment_index import rows_about  # noqa: PLC0415

            for entry in file.at(rows_about(index_of(one.path), one.shipments)):
                found[entry.kind.name].append(entry.row)
    return dict(found)


def of_range(path: ArchivePath, begin: int, end: int) -> list[LogEntry]:
    """Return the file's entries from index `begin` up to but not including `end`."""
    with open_file(path) as file:
        return list(file.between(begin, end))


def of_period(path: ArchivePath, since: datetime, until: datetime) -> list[UUID]:
    """Return the shipments with a status change in a period."""
    with open_file(path) as file:
        return sorted(UUID(shipment_id) for shipment_id in file.spoken_of(since, until))


def of_event(paths: Sequence[ArchivePath], carrier_id: str, event_id: str) -> int | None:
    """Return the index of the event with this id, from the first of these files that has it."""
    for path in paths:
        with open_file(path) as file:
            if (index := file.index_of(carrier_id, event_id)) is not None:
                return index
    return None


def read_bodies(path: ArchivePath, message_ids: Sequence[UUID]) -> dict[UUID, BodyRecord]:
    """Return those of these bodies that a day's file has. Raises UnreadableArchiveError."""
    try:
        with ArchiveReader(path) as archive:
            found = {message_id: archive.find(message_id) for message_id in message_ids}
    except ArchiveFileError as error:
        raise UnreadableArchiveError(f"{path.name}: {error}") from error
    return {message_id: record for message_id, record in found.items() if record is not None}


def file_faults(folder: ArchivePath, months: Sequence[LogMonth]) -> Iterator[tuple[str, str]]:
    """Yield each file that is not as the ledger has it, and why.

    Reads all of them whole, without pyarrow. Raises ObjectStoreError.
    """
    for month in months:
        path = folder / (month.file_name or "")
        for file, sha256 in ((path, month.sha256), (index_of(path), month.index_sha256)):
            if (why := file_fault(file, sha256)) is not None:
                yield file.name, why
        # no digest of it is in the ledger: its content is a signed note
        if not checkpoint_of(path).exists():
            yield checkpoint_of(path).name, "it is missing"
