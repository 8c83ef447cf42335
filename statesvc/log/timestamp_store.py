"""Time stamps as the database holds them."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.log.timestamp import Stamp

SQL = queries("statesvc.log", "timestamp_store")


@dataclass(frozen=True, slots=True, kw_only=True)
class StampStatus:
    """The newest head, and the newest stamp: its head, and its age. None: there is none yet."""

    size: int
    note: str
    stamped_size: int | None
    stamped_note: str | None
    age_seconds: float | None


@dataclass(frozen=True, slots=True)
class StampedHead:
    tree_size: int
    stamped_at: datetime
    authority: str
    token: bytes = field(repr=False)
    note: str


async def stamp_status(connection: AsyncConnection[Any]) -> StampStatus | None:
    """Return the status; None before the first seal."""
    row = await (await connection.execute(SQL["stamp_status"])).fetchone()
    return row and StampStatus(
        size=row[0], note=row[1], stamped_size=row[2], stamped_note=row[3], age_seconds=row[4]
    )


async def store_stamp(
    connection: AsyncConnection[Any], size: int, stamp: Stamp, token: bytes
) -> None:
    parameters = {
        "tree_size": size,
        "stamped_at": stamp.stamped_at,
        "authority": stamp.authority,
        "token": token,
    }
    await connection.execute(SQL["store_stamp"], parameters)


async def vouching_stamp(
    connection: AsyncConnection[Any], *, size: int, last: int
) -> StampedHead | None:
    """Return the first that covers all entries up to the index `last`, else the newest;
    of heads up to `size`.
    """
    row = await (
        await connection.execute(SQL["vouching"], {"size": size, "last": last}, binary=True)
    ).fetchone()
    return row and StampedHead(*row)
