"""A fault and its place."""

from dataclasses import dataclass
from typing import Final

# Number of faults to report; a single change often shows in several places.
FAULTS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class LogFault:
    table: str
    row: str
    field: str
    why: str

    def __str__(self) -> str:
        return f"{self.table} ({self.row}), {self.field}: {self.why}"
