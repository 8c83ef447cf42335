"""The files of a month: its entries, their index by shipment, the signed head that covers them.

The entries appear last.
"""

from typing import Final

from statesvc.files.archive_folder import ArchiveNames, ArchivePath

LOG_FILES: Final = ArchiveNames(
    subject="log", mark=b"log archive", suffixes=(".parquet", ".shipments.parquet", ".checkpoint")
)


def index_of(entries: ArchivePath) -> ArchivePath:
    return entries.with_name(LOG_FILES.file_names(entries.name)[1])


def checkpoint_of(entries: ArchivePath) -> ArchivePath:
    """Return the signed head that covers a file of entries."""
    return entries.with_name(LOG_FILES.file_names(entries.name)[2])
