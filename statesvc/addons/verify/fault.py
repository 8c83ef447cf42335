"""One thing that is wrong, and where."""

from dataclasses import dataclass
from typing import Final

FAULTS_MAX: Final = 100
"""Number of faults that are reported; one change often shows in several places."""


@dataclass(frozen=True, slots=True)
class LogFault:
    """`row` names the row by its key."""

    table: str
    row: str
    field: str
    why: str

    def __str__(self) -> str:
        return f"{self.table} ({self.row}), {self.field}: {self.why}"
