"""Errors in reading or writing an archived month.

Messages name the file and the remedy; they quote no entry.
"""

from collections.abc import Iterable
from uuid import UUID


class UnreadableArchiveError(RuntimeError):
    """An archived month cannot be read now: its file is missing, altered, or this
    installation cannot read it.
    """


class AddOnMissingError(UnreadableArchiveError):
    """The add-on that reads archives is off."""


class EntryFileError(UnreadableArchiveError):
    """A file differs from its written form. `place` is the position."""

    def __init__(self, name: str, place: str, why: str) -> None:
        super().__init__(name, place, why)
        self.name = name
        self.place = place
        self.why = why

    def __str__(self) -> str:
        return (
            f"{self.name}, {self.place}: {self.why}; put the copy from the backup of the archive's"
            " folder back"
        )


class NoParquetError(UnreadableArchiveError):
    """pyarrow is not installed."""

    def __str__(self) -> str:
        return (
            "archived months of the log are Parquet files, which need pyarrow:"
            " pip install 'statesvc[archive]'"
        )


class ArchivedHistoryError(RuntimeError):
    """Events of these shipments are archived and must be brought back before the
    transaction can be done again.
    """

    def __init__(self, shipments: Iterable[UUID]) -> None:
        super().__init__("a part of their history is archived")
        self.shipments = frozenset(shipments)
