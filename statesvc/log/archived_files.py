"""Readers of the files of archives, which the add-on at the seam `history` brings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, Self, TypeAlias, cast
from uuid import UUID

from psycopg import AsyncConnection

from statesvc.files.archive_errors import AddOnMissingError
from statesvc.files.archive_folder import ArchivePath
from statesvc.files.body_record import BodyRecord
from statesvc.log.entry_row import LogEntry
from statesvc.log.log_months import LogMonth, count_archived
from statesvc.seams import is_on, parts, sentence

# By kind: batch_id, ordinal, canonical (as tables have it), sealed_part, and the columns of the
# kind's table.
EntriesByKind: TypeAlias = dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class FileQuery:
    path: ArchivePath
    shipments: tuple[UUID, ...]


class OpenedMonth(Protocol):
    """An open file of a month's entries. Raises EntryFileError."""

    @property
    def groups(self) -> Sequence[Any]:
        """Groups of entries, each with the ids of its `first_batch` and `last_batch`."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def group(self, group: Any) -> list[LogEntry]:  # noqa: ANN401 - one of `groups`
        """Return the entries of a group."""

    def histories(
        self, first: int = 0, after: int | None = None
    ) -> Iterator[list[tuple[str, int, bytes]]]:
        """Yield shipment, version and canonical bytes of the events of these groups."""


class ArchivedFiles(Protocol):
    """Plain functions that any process can run. Each raises UnreadableArchiveError."""

    def open_file(self, path: ArchivePath) -> OpenedMonth:
        """Open a month's entries."""

    def of_shipments(self, asked: Sequence[FileQuery]) -> EntriesByKind:
        """Return all that these files have about these shipments."""

    def of_range(self, path: ArchivePath, begin: int, end: int) -> list[LogEntry]:
        """Return the file's entries from index `begin` up to but not including `end`."""

    def of_period(self, path: ArchivePath, since: datetime, until: datetime) -> list[UUID]:
        """Return the shipments with a status change in a period."""

    def of_event(self, paths: Sequence[ArchivePath], carrier_id: str, event_id: str) -> int | None:
        """Return the index of the event with this id."""

    def file_faults(
        self, folder: ArchivePath, months: Sequence[LogMonth]
    ) -> Iterator[tuple[str, str]]:
        """Yield each file that is not as the ledger has it, and why."""

    def read_bodies(self, path: ArchivePath, message_ids: Sequence[UUID]) -> dict[UUID, BodyRecord]:
        """Return those of these bodies that a day's file has."""


def archived_files() -> ArchivedFiles:
    """Return the reader of archives. Raises AddOnMissingError."""
    for module in parts("history"):
        return cast("ArchivedFiles", module)
    raise AddOnMissingError(sentence("archive", "an archived part of the log"))


async def require_archive(connection: AsyncConnection[Any], about: str) -> None:
    """Refuse a call that must reach the archives while their add-on is off.

    Raises AddOnMissingError.
    """
    if not is_on("archive") and any(archived := await count_archived(connection)):
        raise AddOnMissingError(f"{archived}: {sentence('archive', about)}")
