"""What doctor says: one sentence about one thing."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How urgent a finding is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about one thing."""

    severity: Severity
    about: str
    text: str


def ok(about: str, text: str) -> Finding:
    """Nothing to do."""
    return Finding(Severity.OK, about, text)


def warn(about: str, text: str) -> Finding:
    """Works, but has a weakness that a human should know."""
    return Finding(Severity.WARN, about, text)


def fail(about: str, text: str) -> Finding:
    """Must be repaired."""
    return Finding(Severity.FAIL, about, text)
