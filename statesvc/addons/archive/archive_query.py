"""SQL over the archived months, straight from their Parquet files, by DuckDB.

A question is one SELECT, which sees the files of the archive and nothing else of the machine: no other file, no network, no setting.
The columns are those of the files (docs/log-archive.md); `document` is the entry itself. Personal parts stay sealed.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import duckdb

from statesvc.files.archive_folder import ArchivePath
from statesvc.files.object_path import ObjectPath
from statesvc.files.object_store import file_system
from statesvc.log.entry_kinds import ENTRY_KINDS

_ROWS_AT_ONCE: Final = 1000
_NO_INSTALLING: Final = {"autoinstall_known_extensions": "false"}
_LOCKED: Final = (
    "SET TimeZone = 'UTC'",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
"""Settings of a query: answers are in UTC, whatever this machine's zone, and nothing else is reachable."""


class ArchiveQueryError(RuntimeError):
    """The question cannot be answered; the message is DuckDB's own, or says what to ask instead."""


@contextmanager
def archive_tables(files: Sequence[ArchivePath]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open `entries` over these files, and a view for each kind of entry: `events`, `transitions` and so on. Raises ArchiveQueryError."""
    names = [str(file) for file in files]
    with duckdb.connect(config=dict(_NO_INSTALLING)) as connection:
        try:
            for bucket in {file.bucket for file in files if isinstance(file, ObjectPath)}:
                connection.register_filesystem(file_system(bucket))
            connection.read_parquet(names).create_view("entries")
            for kind in ENTRY_KINDS:
                columns = ", ".join(
                    ("log_index", *kind.file_columns, "decode(canonical)::JSON AS document")
                )
                connection.view("entries").filter(f"entry = '{kind.name}'").project(
                    columns
                ).create_view(f"{kind.name}s")
            connection.execute("SET allowed_paths = ?", [names])
            for statement in _LOCKED:
                connection.execute(statement)
        except duckdb.Error as error:
            raise ArchiveQueryError(_first_line(error)) from error
        yield connection


def answer(
    connection: duckdb.DuckDBPyConnection, question: str
) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Return the names of the columns, and the rows as they are read. Raises ArchiveQueryError; the rows raise it too."""
    try:
        statements = connection.extract_statements(question)
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            raise ArchiveQueryError("ask one SELECT: the archive is only read")
        found = connection.execute(statements[0])
        return [column[0] for column in found.description or ()], _rows(found)
    except duckdb.Error as error:
        raise ArchiveQueryError(_first_line(error)) from error


def _rows(found: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    try:
        while rows := found.fetchmany(_ROWS_AT_ONCE):
            yield from rows
    except duckdb.Error as error:
        raise ArchiveQueryError(_first_line(error)) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
