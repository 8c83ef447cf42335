"""The archived months for the verification: whole files, and entries by batch and by shipment.

An unreadable file is a fault with its place, and excuses the entries missing there: a lost file is
a single finding.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from psycopg import Connection

from events.entry.kinds import EntryName
from statesvc.addons.verify.fault import LogFault
from statesvc.files.archive_errors import AddOnMissingError, EntryFileError, UnreadableArchiveError
from statesvc.files.archive_folder import ArchivePath
from statesvc.files.object_path import ObjectStoreError
from statesvc.log.archived_files import OpenedMonth, archived_files
from statesvc.log.entry_row import LogEntry
from statesvc.log.log_months import LogMonth, archived_months

_WHOLE: Final = "the whole file"


@dataclass(frozen=True, slots=True)
class UnreadBatches:
    """Unread from `first` to `last`, both included, of which something cannot be read."""

    first: int
    last: int

    def __contains__(self, batch_id: int) -> bool:
        return self.first <= batch_id <= self.last


@dataclass(slots=True)
class FileEntries:
    name: str
    entries: list[LogEntry] = field(default_factory=list)
    faults: list[LogFault] = field(default_factory=list)
    unread: list[UnreadBatches] = field(default_factory=list)


@dataclass(slots=True)
class ArchivedMonths:
    """All archived months. One object a process: it keeps their files open."""

    folder: ArchivePath | None
    months: Sequence[LogMonth]
    _files: dict[str, OpenedMonth | LogFault] = field(default_factory=dict)

    @classmethod
    def read(cls, connection: Connection[Any], folder: ArchivePath | None) -> "ArchivedMonths":
        return cls(folder, archived_months(connection))

    def of_batches(self, low: int, high: int) -> Iterator[FileEntries]:
        """Yield the files' entries of the batches from `low` up to but not including `high`."""
        for month in self.months:
            first, last = month.first_batch or 0, month.last_batch or 0
            if first < high and last >= low:
                found = FileEntries(month.file_name or "")
                file = self._open(found.name)
                if isinstance(file, LogFault):
                    found.faults.append(file)
                    # excuses what is missing of these batches: a lost file is one finding, not
                    # millions
                    found.unread.append(UnreadBatches(first, last))
                else:
                    _gather(file, found, low, high)
                yield found

    def events_of(self, part: str) -> Iterator[tuple[str, int, bytes, bytes]]:
        """Yield events of shipments with ids that begin so: shipment, version, leaf hash, bytes."""
        for entry in self.entries_of(part, (EntryName.EVENT,)):
            yield entry.values[0], entry.values[1], entry.leaf_hash, entry.canonical

    def entries_of(self, part: str, kinds: Collection[str]) -> Iterator[LogEntry]:
        """Yield the entries of these kinds about shipments with ids that begin so."""
        for month in self.months:
            file = self._open(month.file_name or "")
            if isinstance(file, LogFault):
                continue
            found = FileEntries(month.file_name or "")
            _gather(file, found, month.first_batch or 0, (month.last_batch or 0) + 1)
            for entry in found.entries:
                if entry.kind.name in kinds and entry.values[0].startswith(part):
                    yield entry

    def faults(self, place: int) -> Iterator[LogFault]:
        """Yield faults of a month's whole files: the digests of the ledger, and the head there."""
        month = self.months[place]
        if self.folder is None:
            yield _no_folder(month.file_name or "")
            return
        try:
            for name, why in archived_files().file_faults(self.folder, [month]):
                yield LogFault(name, _WHOLE, "content", why)
        except ObjectStoreError as error:
            yield LogFault(error.what, _WHOLE, "content", error.why)
        except AddOnMissingError as error:
            yield LogFault(month.file_name or "", _WHOLE, "content", str(error))

    def _open(self, name: str) -> OpenedMonth | LogFault:
        # a fault is kept too: a missing file is looked for once
        if name not in self._files:
            self._files[name] = self._opened(name)
        return self._files[name]

    def _opened(self, name: str) -> OpenedMonth | LogFault:
        if self.folder is None:
            return _no_folder(name)
        try:
            return archived_files().open_file(self.folder / name)
        except EntryFileError as error:
            return _fault(error)
        except UnreadableArchiveError as error:
            return LogFault(name, _WHOLE, "content", str(error))


def _gather(file: OpenedMonth, found: FileEntries, low: int, high: int) -> None:
    for group in file.groups:
        if group.first_batch < high and group.last_batch >= low:
            try:
                entries = file.group(group)
            except EntryFileError as error:
                found.faults.append(_fault(error))
                found.unread.append(UnreadBatches(group.first_batch, group.last_batch))
            else:
                found.entries += (entry for entry in entries if low <= entry.batch_id < high)


def _fault(error: EntryFileError) -> LogFault:
    return LogFault(error.name, error.place, "content", error.why)


def _no_folder(name: str) -> LogFault:
    return LogFault(
        name, _WHOLE, "content", "it cannot be read: STATESVC_ARCHIVE_DIR is not set here"
    )
