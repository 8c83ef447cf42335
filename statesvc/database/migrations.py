"""The migration files: `NNNN_name.sql`, applied in their order, never edited once they are out."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

from statesvc.database.statements import split_statements

NO_TRANSACTION: Final = "-- migrate: no-transaction"
_FILE: Final = re.compile(r"(\d{4})_(\w+)\.sql")
_CONCURRENT_INDEX: Final = re.compile(r"\bCREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\b", re.IGNORECASE)
_REPEATABLE_INDEX: Final = re.compile(
    _CONCURRENT_INDEX.pattern + r"\s+IF\s+NOT\s+EXISTS\s+(?P<name>\w+)\s+ON\s+(?:ONLY\s+)?(?P<schema>\w+)\.(?P<table>\w+)\s+(?P<keys>.+)",
    re.IGNORECASE | re.DOTALL,
)


class MigrationError(RuntimeError):
    """The schema can't be brought to this release; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file."""

    version: int
    name: str
    text: str

    @property
    def label(self) -> str:
        """As the file is called."""
        return f"{self.version:04}_{self.name}"

    @property
    def sha256(self) -> str:
        """Of the file's text, lower-case hex."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def in_transaction(self) -> bool:
        """Whether the file is applied as a whole or not at all."""
        return self.text.partition("\n")[0].strip() != NO_TRANSACTION

    def steps(self) -> list["Step"]:
        """Its statements, when it runs without a transaction."""
        return [Step.of(statement, self.label) for statement in split_statements(self.text)]


class ConcurrentIndex(NamedTuple):
    """An index that is built while traffic goes on. It lives in its table's schema. `keys`: the rest of the statement."""

    schema: str
    name: str
    table: str
    keys: str


@dataclass(frozen=True, slots=True)
class Step:
    """One statement outside a transaction, and the index that it builds concurrently."""

    statement: str
    index: ConcurrentIndex | None

    @classmethod
    def of(cls, statement: str, label: str) -> "Step":
        """Raises `MigrationError` for an index that could not be built again after a crash."""
        if _CONCURRENT_INDEX.search(statement) is None:
            return cls(statement, None)
        found = _REPEATABLE_INDEX.search(statement)
        if found is None:
            raise MigrationError(
                f"{label}: write CREATE INDEX CONCURRENTLY IF NOT EXISTS name ON schema.table, so that the file can run again"
            )
        return cls(statement, ConcurrentIndex(found["schema"], found["name"], found["table"], found["keys"]))


@dataclass(frozen=True, slots=True)
class Standing:
    """How a database compares with the files of this release."""

    pending: tuple[Migration, ...]
    newer: tuple[int, ...]
    """Versions that a later release applied; this one works on, for migrations only add."""


def read_migrations(folder: Traversable | None = None) -> tuple[Migration, ...]:
    """All files in their order, by default those of the package `migrations`."""
    folder = folder or files("migrations")
    found = sorted((int(name[1]), name[2], entry) for entry in folder.iterdir() if (name := _FILE.fullmatch(entry.name)))
    versions = [version for version, _, _ in found]
    if len(set(versions)) < len(versions):
        raise MigrationError(f"two migrations share a version: {', '.join(entry.name for _, _, entry in found)}")
    return tuple(Migration(version, name, entry.read_text("utf-8")) for version, name, entry in found)


def compare(migrations: Iterable[Migration], applied: Mapping[int, str]) -> Standing:
    """`applied` has the checksum of each applied version. Raises `MigrationError` where history differs."""
    known = {migration.version: migration for migration in migrations}
    newest = max(known, default=0)
    for version, sha256 in applied.items():
        if version in known and known[version].sha256 != sha256:
            raise MigrationError(
                f"{known[version].label} was changed after it was applied: restore the file, and put the change into a new migration"
            )
        if version not in known and version < newest:
            raise MigrationError(f"the database has migration {version:04}, which this release lacks: use the release that made it")
    pending = tuple(migration for version, migration in known.items() if version not in applied)
    late = [migration.label for migration in pending if migration.version < max(applied, default=0)]
    if late:
        raise MigrationError(f"the database is past these migrations, which it never had: {', '.join(late)}; give them a new number")
    return Standing(pending, tuple(sorted(version for version in applied if version not in known)))
