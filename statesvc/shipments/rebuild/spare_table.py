"""The spare table: emptied, brought up to date with the live one, and swapped with it.

No lock is asked for longer than a second, since traffic queues behind it; a caller that does not get one tries again.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar
from uuid import UUID

import psycopg
from psycopg import AsyncConnection

from statesvc.database.arrays import uuids
from statesvc.database.pending import send
from statesvc.database.queries import queries
from statesvc.database.sql_errors import Failure, failure
from statesvc.log.actions import record_action
from statesvc.log.history import History
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.rebuild.folding import add_rows

_SQL = queries("statesvc.shipments.rebuild", "rebuild")
_NOTES: Final = 2_000
_FEW: Final = 200
"""Shipments that may be left to fold under the lock of the swap: some milliseconds."""
_PASSES_MAX: Final = 50
_TRIES: Final = 60
Connection = AsyncConnection[Any]
T = TypeVar("T")


class BusyError(RuntimeError):
    """Others held a lock for a minute; nothing was changed."""


async def prepare(connection: Connection) -> None:
    """Note changes from here on, and empty the spare table."""
    # in this order: a change whose note the emptying takes away has committed before the first slice is read
    await _patiently(lambda: connection.execute(_SQL["watch"]))

    async def empty() -> None:
        async with connection.transaction():
            await connection.execute(_SQL["empty"])
            await connection.execute(_SQL["no_way_back"])

    await _patiently(empty)


async def catch_up(connection: Connection, archive: History) -> None:
    """Fold what changed meanwhile, until only a little is left or traffic is as fast as we are."""
    for _ in range(_PASSES_MAX):
        if await _take(connection, archive) <= _FEW:
            return


async def swap(
    connection: Connection, archive: History, *, actor: str, verb: str, events: int
) -> None:
    """Bring the spare table up to date and put it in the live one's place, in one transaction. Raises BusyError."""

    async def swapped() -> None:
        async with connection.transaction():
            await connection.execute(_SQL["lock_live"])
            while await _take(connection, archive):
                pass
            await connection.execute(_SQL["swap"])
            await connection.execute(_SQL["unwatch_spare"])
            await connection.execute(_SQL["watch"])
            await connection.execute(_SQL["note_swap"], {"actor": actor, "events": events})
            await record_action(
                connection,
                actor=actor,
                verb=verb,
                target="projection shipment",
                details={"events": events},
            )

    await _patiently(swapped)


async def forget(connection: Connection) -> None:
    """Give up the way back: no more notes, no old table."""

    async def ended() -> None:
        async with connection.transaction():
            await connection.execute(_SQL["unwatch"])
            await connection.execute(_SQL["empty"])
            await connection.execute(_SQL["no_way_back"])

    await _patiently(ended)


async def _take(connection: Connection, archive: History) -> int:
    """Fold some of the noted shipments again; return how many they were. Notes and rows change together."""
    async with connection.transaction():
        asked = await send(
            connection,
            _SQL["take_notes"],
            {"limit": _NOTES},
            lambda rows: [shipment_id for (shipment_id,) in rows],
        )
        touched: list[UUID] = await asked.rows()
        if touched:
            await archive.restore_shipments(connection, touched)
            histories = await send(
                connection, _SQL["histories"], {"shipment_ids": uuids(touched)}, _histories
            )
            await connection.execute(_SQL["remove"], {"shipment_ids": uuids(touched)})
            await add_rows(connection, await histories.rows())
        return len(touched)


def _histories(rows: Iterable[Any]) -> list[tuple[UUID, bytes]]:
    return [(shipment_id, decompress_json(canonical)) for shipment_id, canonical in rows]


async def _patiently(action: Callable[[], Awaitable[T]]) -> T:
    for _ in range(_TRIES):
        try:
            return await action()
        except psycopg.Error as error:
            if failure(error) is not Failure.TRANSIENT:
                raise
        await asyncio.sleep(random.uniform(0.3, 1.0))  # noqa: S311 - so as not to meet the same traffic again
    raise BusyError(
        "the tables are too busy: no lock within a minute; a long transaction is in the way (pg_stat_activity shows it)"
    )
