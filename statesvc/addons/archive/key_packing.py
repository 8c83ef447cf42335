"""Packing of dedupe keys of archived shipments: eight bytes each in the shipment's own row.

A pass walks all keys in order, in short transactions, each of which packs and deletes the same keys
(functions/packed_keys.sql in `migrations/`), so a crash loses no key, and the next pass begins
again. Packed keys leave the walk.
"""

from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.database.queries import queries

_SQL = queries("statesvc.addons.archive", "key_packing")
_KEYS_AT_ONCE: Final = 20_000


async def is_packing_due(connection: AsyncConnection[Any]) -> bool:
    """Return whether keys of an archived month are still unpacked."""
    return bool(await _rows(connection, "unpacked"))


async def pack_keys(connection: AsyncConnection[Any], *, keys_at_once: int = _KEYS_AT_ONCE) -> int:
    """Run a pass; return the number of packed keys.

    The connection is in autocommit, and its session leads the archive of the log.
    """
    months = [month for (month,) in await _rows(connection, "unpacked")]
    carrier_id, event_id, done = "", "", 0
    while True:
        ((last_carrier, last_event, packed),) = await _rows(
            connection, "pack_keys", carrier_id=carrier_id, event_id=event_id, limit=keys_at_once
        )
        if last_carrier is None:
            break
        carrier_id, event_id, done = last_carrier, last_event, done + packed
    await connection.execute(_SQL["note_packed"], {"months": months})
    return done


async def _rows(connection: AsyncConnection[Any], name: str, **parameters: object) -> list[Any]:
    return await (await connection.execute(_SQL[name], parameters)).fetchall()
