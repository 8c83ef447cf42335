"""Moves a cell to another machine: its standby takes the primary's place, with the log, the sequences and the keys, between two commits.

The old server is fenced first: each of its new transactions only reads, and sessions that write are ended. Carriers get 503 meanwhile
and try again. Nothing is promoted before the standby has replayed all that the old server wrote; until then the fence is lifted again
if anything goes wrong. After that there is no way back by itself: the old server stays fenced, also after a restart.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from statesvc.database.open_connection import open_connection
from statesvc.database.queries import queries

_SQL: Final = queries("statesvc.cells", "cell_move")
# commands to the server, which no service's role may give, and which cannot be planned
_FENCE: Final = "ALTER SYSTEM SET default_transaction_read_only = on"
"""From the next reload on, every new transaction only reads. The standby does not take it over; it outlives a restart."""
_LIFT: Final = "ALTER SYSTEM RESET default_transaction_read_only"
_RELOAD: Final = "SELECT pg_reload_conf()"
_PROMOTE: Final = "SELECT pg_promote(true, 60)"
_POLL_SECONDS: Final = 0.01
BEHIND_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes that the standby may be behind when the fence goes up: it must catch up within the gap."""


class CellMoveError(RuntimeError):
    """The cell was not moved; the message says in which state it is, and what to do."""


@dataclass(frozen=True, slots=True)
class Moved:
    """`gap_seconds`: from the fence to the promoted server, in which nothing could be written."""

    gap_seconds: float
    behind_bytes: int
    """Bytes that the standby was behind when it began."""


async def check_standby(primary_dsn: str, standby_dsn: str) -> int:
    """Return how many bytes the standby is behind. Raises CellMoveError unless it follows this primary closely enough to take its place."""
    async with _session(primary_dsn) as primary, _session(standby_dsn) as standby:
        return await _checked(primary, standby)


async def move_server(primary_dsn: str, standby_dsn: str, *, fenced_seconds_max: float) -> Moved:
    """Fence, wait for the standby, compare, promote. Both addresses are of superusers. Raises CellMoveError."""
    async with _session(primary_dsn) as primary, _session(standby_dsn) as standby:
        behind = await _checked(primary, standby)
        began = time.monotonic()
        try:
            async with asyncio.timeout(fenced_seconds_max):
                await _fence(primary, primary_dsn)
                lsn = await _value(primary, "written")
                await _until(lambda: _has_replayed(standby, lsn))
                await _compare(primary, standby)
        except BaseException as error:
            await asyncio.shield(_lift(primary_dsn))
            if isinstance(error, TimeoutError):
                raise CellMoveError(
                    f"the standby did not catch up within {fenced_seconds_max:g} s: the cell writes on where it was"
                ) from error
            if isinstance(error, CellMoveError | psycopg.Error):
                raise CellMoveError(f"{error}: the cell writes on where it was") from error
            raise
        try:
            is_promoted = await (await standby.execute(_PROMOTE)).fetchone()
        except psycopg.Error as error:
            raise CellMoveError(_UNKNOWN) from error
        if is_promoted != (True,):
            raise CellMoveError(_UNKNOWN)
        return Moved(time.monotonic() - began, behind)


_UNKNOWN: Final = (
    "whether the standby was promoted is not known, so the old server stays fenced: ask `SELECT pg_is_in_recovery()` of the standby; "
    "if it is true and shall stay so, `ALTER SYSTEM RESET default_transaction_read_only` and a reload bring the old server back"
)


async def _checked(primary: AsyncConnection[Any], standby: AsyncConnection[Any]) -> int:
    cluster, is_standby = await _row(primary, "role_of_server")
    other, follows = await _row(standby, "role_of_server")
    if is_standby:
        raise CellMoveError(
            "the first server follows another one itself: it is not where the cell writes"
        )
    if not follows:
        raise CellMoveError(
            "the second server follows nobody: make it a standby with `pg_basebackup -R`"
        )
    if cluster != other:
        raise CellMoveError(
            "the second server is no standby of the first: they are different clusters"
        )
    behind = int(await _value(standby, "behind", lsn=await _value(primary, "written")))
    if behind > BEHIND_BYTES_MAX:
        raise CellMoveError(
            f"the standby is {behind:,} bytes behind: wait until it is below {BEHIND_BYTES_MAX:,}"
        )
    return behind


async def _fence(primary: AsyncConnection[Any], dsn: str) -> None:
    """Fence the primary: once this returns nobody writes to it."""
    await primary.execute(_FENCE)
    await primary.execute(_RELOAD)
    await _until(lambda: _new_sessions_only_read(dsn))
    await primary.execute(_SQL["end_others"])
    await _until(lambda: _nobody_writes(primary))


async def _compare(primary: AsyncConnection[Any], standby: AsyncConnection[Any]) -> None:
    here, there = await _row(primary, "contents"), await _row(standby, "contents")
    if here != there:
        raise CellMoveError(f"the standby differs from the primary ({there} instead of {here})")


async def _lift(dsn: str) -> None:
    async with _session(dsn) as primary:
        await primary.execute(_LIFT)
        await primary.execute(_RELOAD)


async def _new_sessions_only_read(dsn: str) -> bool:
    """Return whether new sessions only read. The server's main process hands its configuration on; it may read it later than others do."""
    async with _session(dsn) as fresh:
        return bool(await _value(fresh, "is_fenced"))


async def _nobody_writes(primary: AsyncConnection[Any]) -> bool:
    return int(await _value(primary, "writers")) == 0


async def _has_replayed(standby: AsyncConnection[Any], lsn: str) -> bool:
    return int(await _value(standby, "behind", lsn=lsn)) <= 0


async def _until(happened: Callable[[], Any]) -> None:
    while not await happened():  # noqa: ASYNC110 - the servers decide, and say it to nobody
        await asyncio.sleep(_POLL_SECONDS)


async def _row(connection: AsyncConnection[Any], query: str, **parameters: str) -> tuple[Any, ...]:
    row = await (await connection.execute(_SQL[query], parameters or None)).fetchone()
    assert row is not None  # noqa: S101 - one row, always
    return tuple(row)


async def _value(connection: AsyncConnection[Any], query: str, **parameters: str) -> Any:  # noqa: ANN401 - of a column
    return (await _row(connection, query, **parameters))[0]


@asynccontextmanager
async def _session(dsn: str) -> AsyncIterator[AsyncConnection[Any]]:
    # the standby only reads, and so does the fenced primary
    async with await open_connection(
        dsn, application_name="statesvc cell move", writes=False
    ) as connection:
        yield connection
