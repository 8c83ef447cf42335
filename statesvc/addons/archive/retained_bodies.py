"""Bodies that are retained beyond their partition or archive: their message still waits, or
is under a legal hold.
"""

from collections.abc import Sequence
from datetime import date
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from statesvc.database.queries import queries, timestamps, uuids
from statesvc.files.body_record import FIRST, BodyRecord, bounds

_SQL = queries("statesvc.addons.archive", "retained_bodies")
_PRUNED_AT_ONCE: Final = 1000


async def retain_hot(
    connection: AsyncConnection[Any], day: date, message_ids: Sequence[UUID]
) -> None:
    """Copy bodies of a day that is still in the database; those that are retained
    already stay as they are.
    """
    if message_ids:
        await connection.execute(
            _SQL["retain_hot"], {**bounds(day), "message_ids": uuids(message_ids)}
        )


async def retain_archived(connection: AsyncConnection[Any], record: BodyRecord) -> None:
    await connection.execute(
        _SQL["retain_archived"],
        {
            "message_id": record.message_id,
            "received_at": record.received_at,
            "carrier_id": record.carrier_id,
            "commitment": record.commitment,
            "headers": Jsonb(dict(record.headers)),
            "sealed": record.sealed,
        },
    )


async def held_among(
    connection: AsyncConnection[Any], day: date, records: Sequence[BodyRecord]
) -> set[UUID]:
    """Return those of a day's messages that a legal hold keeps."""
    cursor = await connection.execute(
        _SQL["held_among"],
        {
            **bounds(day),
            "message_ids": uuids([record.message_id for record in records]),
            "received_ats": timestamps([record.received_at for record in records]),
        },
    )
    return {message_id async for (message_id,) in cursor}


async def prune_retained(connection: AsyncConnection[Any]) -> int:
    """Delete bodies that are no longer required; return their number."""
    after, pruned = FIRST, 0
    while True:
        row = await (
            await connection.execute(
                _SQL["prune_retained"], {"after": after, "limit": _PRUNED_AT_ONCE}
            )
        ).fetchone()
        if row is None or row[1] is None:
            return pruned
        pruned, after = pruned + row[0], row[1]
