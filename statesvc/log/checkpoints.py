"""Signed heads as the database holds them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import class_row

from statesvc.database.queries import queries

SQL = queries("statesvc.log", "checkpoints")


@dataclass(frozen=True, slots=True)
class Head:
    """One row. `created_at` is the `sealed_at` of the entries that it added."""

    tree_size: int
    root: bytes
    note: str
    created_at: datetime


async def latest_head(connection: AsyncConnection[Any]) -> Head | None:
    """The newest one; None as long as nothing was sealed."""
    cursor = connection.cursor(binary=True, row_factory=class_row(Head))
    return await (await cursor.execute(SQL["latest"])).fetchone()


async def covering_head(connection: AsyncConnection[Any], size: int) -> Head | None:
    """The first one of at least this size."""
    cursor = connection.cursor(binary=True, row_factory=class_row(Head))
    return await (await cursor.execute(SQL["covering"], {"size": size})).fetchone()
