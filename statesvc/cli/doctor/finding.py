"""What doctor says: one sentence about one thing."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How urgent a finding is."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about one thing."""

    severity: Severity
    about: str
    text: str


def good(about: str, text: str) -> Finding:
    """Nothing to do."""
    return Finding(Severity.GOOD, about, text)


def warning(about: str, text: str) -> Finding:
    """Works, but somebody should look."""
    return Finding(Severity.WARNING, about, text)


def bad(about: str, text: str) -> Finding:
    """Must be mended."""
    return Finding(Severity.BAD, about, text)
