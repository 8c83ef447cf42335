"""Files of a release in `migrations/`, and their comparison with a database.

See `migrations/__init__.py`. A numbered file is applied once and never edited after its release. A
file of functions is applied again whenever its text changes. The database keeps a ledger of both.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

_FILE: Final = re.compile(r"(\d{4})_(\w+)\.sql")
_FUNCTIONS: Final = "functions"
_CONCURRENT_INDEX: Final = re.compile(
    r"^\s*CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\b", re.IGNORECASE | re.MULTILINE
)
_INDEX_FILE: Final = re.compile(
    r"(?:\s*--[^\n]*\n)*"
    + _CONCURRENT_INDEX.pattern
    + r"\s+IF\s+NOT\s+EXISTS\s+(?P<name>\w+)\s+ON\s+(?P<schema>\w+)\.\w+\s+[^;]+;?\s*",
    re.IGNORECASE | re.MULTILINE,
)


class MigrationError(RuntimeError):
    """The schema can't be brought to this release; the message gives the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    text: str

    @property
    def label(self) -> str:
        return f"{self.version:04}_{self.name}"

    @property
    def sha256(self) -> str:
        """SHA-256 of the text in lower-case hex."""
        return _sha256(self.text)

    @property
    def index(self) -> str | None:
        """Name of the index that the file builds outside a transaction; None: it is one
        transaction.

        Raises `MigrationError` where it does more, or could not run again after a crash.
        """
        if _CONCURRENT_INDEX.search(self.text) is None:
            return None
        found = _INDEX_FILE.fullmatch(self.text)
        if found is None:
            raise MigrationError(
                f"{self.label}: write CREATE INDEX CONCURRENTLY IF NOT EXISTS name ON schema.table,"
                " and nothing else, so that the file can run again"
            )
        # it lives in its table's schema
        return f"{found['schema']}.{found['name']}"


@dataclass(frozen=True, slots=True)
class FunctionFile:
    """A file of functions. Without text: removed in this release."""

    name: str
    text: str

    @property
    def label(self) -> str:
        return f"{_FUNCTIONS}/{self.name}"

    @property
    def sha256(self) -> str:
        """SHA-256 of the text in lower-case hex."""
        return _sha256(self.text)


@dataclass(frozen=True, slots=True)
class Release:
    """The files of this release, each kind in its order."""

    migrations: tuple[Migration, ...]
    functions: tuple[FunctionFile, ...]


@dataclass(frozen=True, slots=True)
class Ledger:
    """Applied files: version or name -> checksum."""

    migrations: Mapping[int, str]
    functions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SchemaState:
    """Difference between a database and the files of this release."""

    migrations: tuple[Migration, ...]
    functions: tuple[FunctionFile, ...]
    """Missing or changed files."""
    newer: tuple[int, ...]
    """Versions of a later release; this release works on, because migrations only add."""

    @property
    def pending(self) -> tuple[Migration | FunctionFile, ...]:
        """Files to apply, in their order."""
        return (*self.migrations, *self.functions)


def read_migrations(folder: Traversable | None = None) -> Release:
    """Read the files of the folder, by default of the package `migrations`."""
    folder = folder or files("migrations")
    found = sorted(
        (int(name[1]), name[2], entry)
        for entry in folder.iterdir()
        if (name := _FILE.fullmatch(entry.name))
    )
    versions = [version for version, _, _ in found]
    if len(set(versions)) < len(versions):
        raise MigrationError(
            f"two migrations share a version: {', '.join(entry.name for _, _, entry in found)}"
        )
    functions = folder / _FUNCTIONS
    texts = (
        sorted((entry.name, entry.read_text("utf-8")) for entry in functions.iterdir())
        if functions.is_dir()
        else []
    )
    return Release(
        migrations=tuple(
            Migration(version, name, entry.read_text("utf-8")) for version, name, entry in found
        ),
        functions=tuple(
            FunctionFile(name.removesuffix(".sql"), text)
            for name, text in texts
            if name.endswith(".sql")
        ),
    )


def compare(release: Release, ledger: Ledger) -> SchemaState:
    """Compare a database with the release. Raises MigrationError for another history.

    The functions of a database that a later release migrated are left alone.
    """
    known = {migration.version: migration for migration in release.migrations}
    newest = max(known, default=0)
    for version, sha256 in ledger.migrations.items():
        if version in known and known[version].sha256 != sha256:
            raise MigrationError(
                f"this database was made from another text of {known[version].label} than any"
                " release has: one that a commit before 0.1.0 made is not upgraded: make a new"
                " database (of the embedded server: stop it and remove its data directory)"
            )
        if version not in known and version < newest:
            raise MigrationError(
                f"the database has migration {version:04}, which this release lacks: use the"
                " release that made it"
            )
    pending = tuple(
        migration for version, migration in known.items() if version not in ledger.migrations
    )
    late = [
        migration.label
        for migration in pending
        if migration.version < max(ledger.migrations, default=0)
    ]
    if late:
        raise MigrationError(
            f"the database is past these migrations, which it never had: {', '.join(late)}; give"
            " them a new number"
        )
    newer = tuple(sorted(version for version in ledger.migrations if version not in known))
    return SchemaState(
        pending, () if newer else tuple(_changed(release.functions, ledger.functions)), newer
    )


def _changed(
    functions: Iterable[FunctionFile], applied: Mapping[str, str]
) -> Iterator[FunctionFile]:
    shipped = {file.name: file for file in functions}
    for name in sorted(shipped.keys() | applied.keys()):
        file = shipped.get(name) or FunctionFile(name, "")
        if applied.get(name) != file.sha256:
            yield file


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
