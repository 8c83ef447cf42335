"""Migrations: forward only, one migrator at a time, without long waits for locks of live traffic.

A numbered file is one transaction, unless it builds an index concurrently: then that is all it
does, and it can run again. The changed files of functions share a transaction. Afterwards the
service's privileges are granted and partitions made ahead; both are repeatable too.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final, LiteralString

import psycopg
import structlog
from psycopg import AsyncConnection, sql

from statesvc.database.log_guard import install_guard
from statesvc.database.migration_files import (
    FunctionFile,
    Ledger,
    Migration,
    MigrationError,
    Release,
    SchemaState,
    compare,
    read_migrations,
)
from statesvc.database.open_connection import open_connection
from statesvc.database.queries import queries
from statesvc.database.service_connection import encoding_fault
from statesvc.database.sql_errors import Failure, failure

# Time that a migrator waits for another to finish.
LOCK_WAIT_SECONDS: Final = 300.0
_LOCK_POLL_SECONDS: Final = 0.25
_TRIES: Final = 20
_PAUSE_SECONDS: Final = 1.0
_PRIVILEGES: Final = "privileges.sql"
_AUDITOR_PRIVILEGES: Final = "privileges_auditor.sql"
AUDITOR_ROLE: Final = "statesvc_auditor"

_SQL = queries("statesvc.database", "migrator")
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """Labels of the files that were applied and of those that still wait; versions that a
    later release applied.
    """

    applied: tuple[str, ...]
    pending: tuple[str, ...]
    newer: tuple[int, ...]


async def migrate(
    owner_dsn: str,
    service_dsn: str,
    *,
    check_only: bool = False,
    folder: Traversable | None = None,
    lock_wait_seconds: float = LOCK_WAIT_SECONDS,
    superuser_dsn: str | None = None,
    auditor_role: str = AUDITOR_ROLE,
) -> MigrationReport:
    """Migrate the schema to this release; `check_only` changes nothing. Raises MigrationError.

    The owner's address leads past any pooler. With a superuser, given or as the owner, the
    guard of the log's tables is updated too.
    """
    folder = folder or files("migrations")
    release = read_migrations(folder)
    async with await _connect(owner_dsn) as connection:
        if fault := encoding_fault(connection):
            raise MigrationError(fault)
        # also for a check: it must not take the lock of a migration that runs
        ledger = await read_ledger(connection)
        state = compare(release, ledger)
        if not check_only:
            async with _alone(connection, lock_wait_seconds):
                grants = await _grants(connection, service_dsn, auditor_role, folder)
                # reads the ledger again, under the lock: another migrator may have been first
                state = await _apply_all(connection, release, grants)
                # also without new functions: somebody may have revoked a privilege
                await _patiently("privileges", partial(_grant, connection, grants))
                await _make_partitions(connection)
                await _enable_triggers(connection)
                # it needs a superuser, whom not every installation has: without one the guard
                # stays as it is
                await _guard(connection, superuser_dsn, owner_dsn)
    if state.newer:
        _log.warning("schema_is_newer", versions=list(state.newer))
    labels = tuple(file.label for file in state.pending)
    return MigrationReport(
        applied=() if check_only else labels,
        pending=labels if check_only else (),
        newer=state.newer,
    )


async def read_ledger(connection: AsyncConnection[Any]) -> Ledger:
    """Read the ledger; empty for a database without schema. Any role of the service may ask."""
    migrations: dict[int, str] = {}
    functions: dict[str, str] = {}
    if await _value(connection, _SQL["has_ledger"]):
        migrations = dict(await (await connection.execute(_SQL["applied_migrations"])).fetchall())
        functions = dict(await (await connection.execute(_SQL["applied_functions"])).fetchall())
    return Ledger(migrations, functions)


async def _apply_all(
    connection: AsyncConnection[Any], release: Release, grants: Sequence[bytes]
) -> SchemaState:
    if not await _value(connection, _SQL["has_ledger"]):
        await _patiently("schema statesvc", partial(_make_ledger, connection))
    state = compare(release, await read_ledger(connection))
    for migration in state.migrations:
        begun = time.monotonic()
        if (index := migration.index) is None:
            await _patiently(migration.label, partial(_apply_whole, connection, migration, begun))
        else:
            await _patiently(
                migration.label, partial(_build_index, connection, index, migration.text)
            )
            # by itself: a crash before it builds the index again
            await _record(connection, migration, begun)
        _log.info(
            "migration_applied", migration=migration.label, duration_ms=_milliseconds_since(begun)
        )
    if state.functions:
        begun = time.monotonic()
        labels = [file.label for file in state.functions]
        await _patiently(
            ", ".join(labels), partial(apply_functions, connection, state.functions, grants)
        )
        _log.info("functions_applied", files=labels, duration_ms=_milliseconds_since(begun))
    return state


async def _make_ledger(connection: AsyncConnection[Any]) -> None:
    async with connection.transaction():
        await connection.execute(_SQL["make_schema"])
        await connection.execute(_SQL["make_ledger"])
        await connection.execute(_SQL["make_function_ledger"])


async def _apply_whole(
    connection: AsyncConnection[Any], migration: Migration, begun: float
) -> None:
    async with connection.transaction():
        # as bytes: psycopg would read a percent sign of the SQL as a placeholder
        await connection.execute(migration.text.encode())
        # in its transaction: file and ledger agree whatever happens
        await _record(connection, migration, begun)


async def _build_index(connection: AsyncConnection[Any], name: str, statement: str) -> None:
    # a concurrent build waits for every older transaction, blocking no one meanwhile
    await connection.execute(_SQL["wait_longer"])
    # a build that was broken off leaves an invalid index, which IF NOT EXISTS would keep for ever
    if await _value(connection, _SQL["is_invalid_index"], {"name": name}):
        await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}".encode())
    await connection.execute(statement.encode())
    await connection.execute(_SQL["wait_briefly"])


async def _record(connection: AsyncConnection[Any], migration: Migration, begun: float) -> None:
    await connection.execute(
        _SQL["record"],
        {
            "version": migration.version,
            "name": migration.name,
            "sha256": migration.sha256,
            "duration_ms": _milliseconds_since(begun),
        },
    )


async def _grants(
    connection: AsyncConnection[Any], service_dsn: str, auditor_role: str, folder: Traversable
) -> list[bytes]:
    """Return the statements that grant the service's login role and the auditor their privileges;
    an owner that serves has them all.
    """
    roles: dict[str, dict[str, str]] = {}
    if (folder / _PRIVILEGES).is_file():
        async with await _connect(service_dsn) as service:
            role = await _value(service, _SQL["who"])
        if role != await _value(connection, _SQL["who"]):
            roles[_PRIVILEGES] = {"service_role": role}
    if (folder / _AUDITOR_PRIVILEGES).is_file() and await _value(
        connection, _SQL["has_role"], {"name": auditor_role}
    ):
        roles[_AUDITOR_PRIVILEGES] = {"auditor_role": auditor_role}
    return [
        sql.SQL((folder / file).read_text("utf-8"))
        .format(**{placeholder: sql.Identifier(role) for placeholder, role in names.items()})
        .as_bytes(connection)
        for file, names in roles.items()
    ]


async def _grant(connection: AsyncConnection[Any], grants: Sequence[bytes]) -> None:
    async with connection.transaction():
        for statements in grants:
            await connection.execute(statements)


async def _guard(
    connection: AsyncConnection[Any], superuser_dsn: str | None, owner_dsn: str
) -> None:
    if superuser_dsn is None and await _value(connection, _SQL["is_superuser"]):
        superuser_dsn = owner_dsn
    if superuser_dsn is not None and await _value(connection, _SQL["can_announce"]):
        await _patiently("the guard of the log's tables", partial(install_guard, superuser_dsn))


async def _make_partitions(connection: AsyncConnection[Any]) -> None:
    if await _value(connection, _SQL["can_partition"]):
        await _patiently(
            "statesvc.ensure_partitions()", partial(connection.execute, _SQL["make_partitions"])
        )


async def _enable_triggers(connection: AsyncConnection[Any]) -> None:
    async def enable() -> None:
        if switched := await _value(connection, _SQL["enable_triggers"]):
            _log.info("triggers_enabled", count=len(switched))

    if await _value(connection, _SQL["can_enable_triggers"]):
        await _patiently("statesvc.enable_triggers()", enable)


async def _patiently(label: str, action: Callable[[], Awaitable[object]]) -> None:
    """Run an action that yields to traffic.

    A lock that is not granted soon is requested again later, so that no queue forms behind it.
    """
    for attempt in range(1, _TRIES + 1):
        try:
            await action()
        except psycopg.Error as error:
            match failure(error):
                case Failure.TRANSIENT if attempt < _TRIES:
                    _log.info("migration_waits_for_a_lock", migration=label, attempt=attempt)
                case Failure.FORBIDDEN:
                    raise MigrationError(
                        f"{label}: {_reason(error)}; STATESVC_OWNER_URL must log in as the role"
                        " that owns the schema"
                    ) from error
                case _:
                    raise MigrationError(f"{label} failed: {_reason(error)}") from error
        else:
            return
        await asyncio.sleep(_PAUSE_SECONDS)


@asynccontextmanager
async def _alone(connection: AsyncConnection[Any], wait_seconds: float) -> AsyncIterator[None]:
    deadline = time.monotonic() + wait_seconds
    while not await _value(connection, _SQL["try_lock"]):
        if time.monotonic() >= deadline:
            raise MigrationError(
                f"another migration has been running for {wait_seconds:g} s; see pg_locks, locktype"
                " 'advisory'"
            )
        await asyncio.sleep(_LOCK_POLL_SECONDS)
    try:
        await connection.execute(_SQL["wait_briefly"])
        await connection.execute(_SQL["announce"])
        yield
    finally:
        if not connection.closed:
            await connection.execute(_SQL["unlock"])


async def _connect(dsn: str) -> AsyncConnection[Any]:
    return await open_connection(dsn, application_name="statesvc migrate")


async def _value(
    connection: AsyncConnection[Any],
    query: LiteralString,
    parameters: dict[str, object] | None = None,
) -> Any:  # noqa: ANN401 - one column of any type
    row = await (await connection.execute(query, parameters)).fetchone()
    return None if row is None else row[0]


def _reason(error: psycopg.Error) -> str:
    return error.diag.message_primary or type(error).__name__


def _milliseconds_since(begun: float) -> int:
    return round((time.monotonic() - begun) * 1000)


async def apply_functions(
    connection: AsyncConnection[Any], files: Sequence[FunctionFile], grants: Sequence[bytes]
) -> None:
    """Apply all files or none: drop the objects of each old text, then run the new text.

    So an upgraded database has exactly the functions of a new one. A concurrent call never
    waits and finds either the old functions or the new ones.
    """
    async with connection.transaction():
        await connection.execute(_SQL["qualify_names"])
        replaced = await _signatures(
            connection, _SQL["functions_of_files"], {"files": [file.name for file in files]}
        )
        if replaced:
            # in one statement, because they may depend on each other
            await connection.execute(f"DROP ROUTINE {', '.join(sorted(replaced))}".encode())
        for file in files:
            before = await _signatures(connection, _SQL["functions"])
            await connection.execute(file.text.encode())
            made = await _signatures(connection, _SQL["functions"]) - before
            await connection.execute(
                _SQL["record_functions"],
                {"file": file.name, "sha256": file.sha256, "functions": sorted(made)},
            )
        # in the same transaction: a running service calls the new functions from the commit on, and
        # they may use a table on which it has no privilege yet
        await _grant(connection, grants)


async def _signatures(
    connection: AsyncConnection[Any],
    query: LiteralString,
    parameters: dict[str, object] | None = None,
) -> set[str]:
    return {signature async for (signature,) in await connection.execute(query, parameters)}
