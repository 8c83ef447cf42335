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
from typing import Final, NamedTuple

NO_TRANSACTION: Final = "-- migrate: no-transaction"
_FILE: Final = re.compile(r"(\d{4})_(\w+)\.sql")
_FUNCTIONS: Final = "functions"
_CONCURRENT_INDEX: Final = re.compile(
    r"\bCREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\b", re.IGNORECASE
)
_REPEATABLE_INDEX: Final = re.compile(
    _CONCURRENT_INDEX.pattern
    + r"\s+IF\s+NOT\s+EXISTS\s+(?P<name>\w+)\s+ON\s+(?:ONLY\s+)?(?P<schema>\w+)\.(?P<table>\w+)\s+(?P<keys>.+)",
    re.IGNORECASE | re.DOTALL,
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
    def in_transaction(self) -> bool:
        """True if the file is applied as a whole or not at all."""
        return self.text.partition("\n")[0].strip() != NO_TRANSACTION

    def steps(self) -> list["Step"]:
        """Return its statements, if it runs without a transaction."""
        return [Step.of(statement, self.label) for statement in split_statements(self.text)]


class ConcurrentIndex(NamedTuple):
    """An index that is built while traffic goes on.

    It lives in its table's schema. `keys`: the rest of the statement.
    """

    schema: str
    name: str
    table: str
    keys: str


@dataclass(frozen=True, slots=True)
class Step:
    """A statement outside a transaction, and the index that it builds concurrently."""

    statement: str
    index: ConcurrentIndex | None

    @classmethod
    def of(cls, statement: str, label: str) -> "Step":
        """Parse a statement.

        Raises `MigrationError` for an index that could not be built again after a crash.
        """
        if _CONCURRENT_INDEX.search(statement) is None:
            return cls(statement, None)
        found = _REPEATABLE_INDEX.search(statement)
        if found is None:
            raise MigrationError(
                f"{label}: write CREATE INDEX CONCURRENTLY IF NOT EXISTS name ON schema.table, so"
                " that the file can run again"
            )
        return cls(
            statement,
            ConcurrentIndex(found["schema"], found["name"], found["table"], found["keys"]),
        )


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


_TOKEN: Final = re.compile(
    r"""
      (?P<line_comment>   --[^\n]* )
    | (?P<block_comment>  /\* )
    | (?P<escape_string>  \b[eE]'(?:[^'\\]|\\.|'')*' )
    | (?P<string>         '(?:[^']|'')*' )
    | (?P<identifier>     "(?:[^"]|"")*" )
    | (?P<dollar>         (?<![\w$])\$(?P<tag>(?:[^\W\d]\w*)?)\$ )
    | (?P<end>            ; )
    | (?P<open>           ['"] )
    """,
    re.VERBOSE | re.DOTALL,
)
_ATOMIC: Final = re.compile(r"\bBEGIN\s+ATOMIC\b", re.IGNORECASE)


class StatementError(ValueError):
    """The text can't be split; the message names the line."""


def split_statements(text: str) -> list[str]:
    """Return the statements without semicolons, empty statements and lone comments.

    Knows PostgreSQL's quotes: '..', E'..', "..", $tag$..$tag$, -- and nested /* */ comments.
    Bodies in BEGIN ATOMIC .. END hold semicolons without quotes and are refused: such a
    function belongs in a file that runs in one transaction.
    """
    return [statement for piece in _pieces(text) if _says_something(statement := piece.strip())]


def _pieces(text: str) -> Iterator[str]:
    start = place = 0
    while (token := _TOKEN.search(text, place)) is not None:
        place = token.end()
        match token.lastgroup:
            case "end":
                yield text[start : token.start()]
                start = place
            case "block_comment":
                place = _end_of_comment(text, token.start())
            case "dollar" | "tag":
                place = _end_of_dollar(text, token)
            case "open":
                raise StatementError(f"line {_line(text, token.start())}: a quote is never closed")
            case _:
                pass
    yield text[start:]


def _end_of_comment(text: str, start: int) -> int:
    depth = 0
    for mark in re.finditer(r"/\*|\*/", text[start:]):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return start + mark.end()
    raise StatementError(f"line {_line(text, start)}: a comment is never closed")


def _end_of_dollar(text: str, token: re.Match[str]) -> int:
    quote = f"${token['tag']}$"
    end = text.find(quote, token.end())
    if end < 0:
        raise StatementError(f"line {_line(text, token.start())}: {quote} is never closed")
    return end + len(quote)


def _says_something(statement: str) -> bool:
    bare = re.sub(r"--[^\n]*|/\*.*?\*/", "", statement, flags=re.DOTALL).strip()
    if _ATOMIC.search(bare):
        raise StatementError(
            "BEGIN ATOMIC can't be split: move it to a file that runs in one transaction"
        )
    return bool(bare)


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
