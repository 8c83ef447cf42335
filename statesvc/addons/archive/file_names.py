"""The files of a month: its entries, their index by shipment, the signed head that covers them.

The entries appear last.
"""

from typing import Final, Protocol, Self, TypeVar

from statesvc.files.archive_folder import ArchiveNames


class _Named(Protocol):
    @property
    def name(self) -> str: ...

    def with_name(self, name: str) -> Self: ...


_Path = TypeVar("_Path", bound=_Named)
LOG_FILES: Final = ArchiveNames(
    subject="log", mark=b"log archive", suffixes=(".parquet", ".shipments.parquet", ".checkpoint")
)


def index_of(entries: _Path) -> _Path:
    return entries.with_name(LOG_FILES.file_names(entries.name)[1])


def checkpoint_of(entries: _Path) -> _Path:
    """Return the signed head that covers a file of entries."""
    return entries.with_name(LOG_FILES.file_names(entries.name)[2])
