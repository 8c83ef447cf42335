"""What an API key may do."""

from enum import StrEnum


class Scope(StrEnum):
    """A right. `ADMIN` implies all others."""

    INGEST = "ingest"
    READ = "read"
    AUDIT = "audit"
    PII = "pii"
    SUBSCRIPTIONS = "subscriptions"
    OPS = "ops"
    ADMIN = "admin"


ALL = frozenset(Scope)


def granted(scopes: frozenset[Scope]) -> frozenset[Scope]:
    """The scopes with what they imply."""
    return ALL if Scope.ADMIN in scopes else scopes
