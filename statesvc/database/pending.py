"""A query that was sent in a pipeline and whose rows are read later: several of them share one round trip."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, LiteralString, TypeVar

from psycopg import AsyncConnection, AsyncCursor

T = TypeVar("T")


class Pending(Generic[T]):
    """`await pending.rows()` waits for the answer; everything sent before it has then been answered too."""

    __slots__ = ("_cursor", "_read")

    def __init__(self, cursor: AsyncCursor[Any], read: Callable[[list[Any]], T]) -> None:
        self._cursor = cursor
        self._read = read

    async def rows(self) -> T:
        """The answer, as `read` made it of the rows."""
        return self._read(await self._cursor.fetchall())


async def send(
    connection: AsyncConnection[Any], query: LiteralString, parameters: dict[str, Any], read: Callable[[list[Any]], T]
) -> Pending[T]:
    """Sends a query; inside `connection.pipeline()` without waiting for it. Rows come in binary, which spares decoding bytea."""
    return Pending(await connection.execute(query, parameters, binary=True), read)


def columns(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> dict[str, list[Any]]:
    """Rows as one array a column, the form that `unnest` takes."""
    if not rows:
        return {name: [] for name in names}
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
