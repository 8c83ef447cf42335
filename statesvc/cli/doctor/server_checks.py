"""Checks of the PostgreSQL server: version, durability, connections, and webhooks that wait for
housekeeping.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.database.connection_bound import read_connection_bound
from statesvc.database.queries import queries
from statesvc.database.session_settings import WHOLE_TRANSACTIONS_SINCE
from statesvc.health.finding import Finding, fail, ok, warn
from statesvc.health.running_processes import read_processes
from statesvc.roles.connection_limits import DIRECT, ONE_OF_EACH, ConnectionPlan
from statesvc.settings.service_settings import CONNECTIONS_MIN, Settings

OLDEST_SERVER: Final = 160000
BUFFERS_BYTES_MIN: Final = 256 * 1024**2
WAL_BYTES_MIN: Final = 2 * 1024**3
WAL_WRITER_DELAY_MS_MAX: Final = 50
# Size of a database that changes more than `WAL_BYTES_MIN` of pages between checkpoints.
LARGE_BYTES_MIN: Final = 8 * 1024**3
LARGE_WAL_BYTES_MIN: Final = 8 * 1024**3
CHECKPOINT_SECONDS_MIN: Final = 900

_SQL = queries("statesvc.cli.doctor", "server_checks")


async def check_server(connection: AsyncConnection[Any]) -> AsyncIterator[Finding]:
    """Check the server's settings; any role may."""
    async for version, name in await connection.execute(_SQL["server_version"]):
        yield check_version(version, name)
    async for name, setting in await connection.execute(_SQL["durable"]):
        yield fail(
            "durability", f"{name} is {setting}: a crash would lose webhooks that were acknowledged"
        )
    async for role, sees_others in await connection.execute(_SQL["sees_others"]):
        if not sees_others:
            yield warn(
                "sessions",
                f"{role} sees only its own sessions: of other roles no old transaction and no"
                f" holder of a lock is named (GRANT pg_read_all_stats TO {role}, as a superuser)",
            )
    async for (
        buffers_bytes,
        wal_bytes,
        writer_delay_ms,
        checkpoint_seconds,
        vacuums,
        size_bytes,
    ) in await connection.execute(_SQL["housekeeping"]):
        for finding in check_housekeeping(
            buffers_bytes=buffers_bytes,
            wal_bytes=wal_bytes,
            writer_delay_ms=writer_delay_ms,
            vacuums=vacuums,
        ):
            yield finding
        for finding in check_checkpoints(
            size_bytes=size_bytes, wal_bytes=wal_bytes, checkpoint_seconds=checkpoint_seconds
        ):
            yield finding


def check_version(version: int, name: str) -> Finding:
    """Check the version: as a number, such as 180004, and by its name, such as 19beta1."""
    if version < OLDEST_SERVER:
        return fail("server", f"PostgreSQL {version // 10000} is too old: 16 or later is needed")
    if version < WHOLE_TRANSACTIONS_SINCE:
        return warn(
            "server",
            f"PostgreSQL {version // 10000} knows no transaction_timeout: a worker that freezes in"
            " the middle of a batch keeps its locks until it is ended (pg_terminate_backend); from"
            " 17 on the server ends its transaction",
        )
    if not name.replace(".", "").isdigit():
        return warn("server", f"PostgreSQL {name} is no release: its data may not outlive it")
    return ok("server", f"PostgreSQL {name}")


def check_housekeeping(
    *, buffers_bytes: int, wal_bytes: int, writer_delay_ms: int, vacuums: bool
) -> Iterator[Finding]:
    """Check the bounds at which the embedded server was measured."""
    if not vacuums:
        yield fail(
            "housekeeping",
            "autovacuum is off: dead rows stay in the queues, and each claim walks them",
        )
    if buffers_bytes < BUFFERS_BYTES_MIN:
        yield warn(
            "housekeeping",
            f"shared_buffers is {buffers_bytes // 1024**2} MB: what does not fit is written while"
            " webhooks wait; a quarter of the server's memory is usual",
        )
    if wal_bytes < WAL_BYTES_MIN:
        yield warn(
            "housekeeping",
            f"max_wal_size is {wal_bytes // 1024**2} MB: in a flood checkpoints follow each other;"
            " 2GB is better",
        )
    if writer_delay_ms > WAL_WRITER_DELAY_MS_MAX:
        yield warn(
            "housekeeping",
            f"wal_writer_delay is {writer_delay_ms} ms: a webhook's commit writes what others left"
            " of the log; 10ms is better",
        )


def check_checkpoints(
    *, size_bytes: int, wal_bytes: int, checkpoint_seconds: int
) -> Iterator[Finding]:
    """Check checkpoints: too many write most pages of a large database whole into the WAL.

    After a checkpoint each page goes whole into the write-ahead log when it is first changed.
    """
    if size_bytes < LARGE_BYTES_MIN:
        return
    if WAL_BYTES_MIN <= wal_bytes < LARGE_WAL_BYTES_MIN:
        yield warn(
            "checkpoints",
            f"max_wal_size is {wal_bytes // 1024**2} MB with a database of {size_bytes // 1024**3}"
            " GB: an event writes several times as much of the write-ahead log as with 16GB;"
            " recovery after a crash then takes minutes",
        )
    if checkpoint_seconds < CHECKPOINT_SECONDS_MIN:
        yield warn(
            "checkpoints",
            f"checkpoint_timeout is {checkpoint_seconds} s: whole pages are written too often;"
            " 30min is better",
        )


async def check_connections(connection: AsyncConnection[Any], settings: Settings) -> Finding:
    """Count the recently seen processes; a process of each role if there are none."""
    bound = await read_connection_bound(connection)
    running = [
        process.role
        for process in await read_processes(connection)
        if process.role in DIRECT and not process.is_silent
    ]
    roles = sorted(running, key=ONE_OF_EACH.index) or ONE_OF_EACH
    least, wanted = (
        ConnectionPlan.of(CONNECTIONS_MIN),
        ConnectionPlan.of(settings.database.database_connections),
    )
    if bound.left < least.wanted(roles):
        return fail(
            "connections",
            f"too few: at least {least.arithmetic(roles)}, but {bound.why}: {bound.left} left",
        )
    if bound.left < wanted.wanted(roles):
        hint = "" if len(roles) <= len(ONE_OF_EACH) else ", or lower STATESVC_DATABASE_CONNECTIONS"
        return warn(
            "connections",
            f"slower than it could be: {wanted.arithmetic(roles)} are wanted, but {bound.why}:"
            f" {bound.left} left{hint}",
        )
    return ok("connections", f"{wanted.arithmetic(roles)} at most, and {bound.left} may be had")
