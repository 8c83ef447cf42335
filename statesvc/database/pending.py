"""A query sent in a pipeline, with rows that are read later: several share a round trip."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, LiteralString, Protocol, TypeVar

T = TypeVar("T")


class Rows(Protocol):
    async def fetchall(self) -> list[Any]: ...

    async def fetchone(self) -> Any:  # noqa: ANN401 - a row, as psycopg gives it
        """Fetch the first row."""


class Sender(Protocol):
    """Executes statements.

    A connection, which waits for each, or a pipeline on a connection, which waits for requested
    answers.
    """

    async def execute(
        self,
        query: LiteralString,
        params: Mapping[str, Any] | None = None,
        *,
        prepare: bool | None = None,
        binary: bool = False,
    ) -> Rows:
        """Execute a statement, or add it to the pipeline."""


class Pending(Generic[T]):
    """`await pending.rows()` waits for the answer; everything sent before it has
    then been answered too.
    """

    __slots__ = ("_answer", "_read")

    def __init__(self, answer: Rows, read: Callable[[list[Any]], T]) -> None:
        self._answer = answer
        self._read = read

    async def rows(self) -> T:
        """Return the answer, as `read` made it of the rows."""
        return self._read(await self._answer.fetchall())


async def send(
    connection: Sender,
    query: LiteralString,
    parameters: Mapping[str, Any],
    read: Callable[[list[Any]], T],
) -> Pending[T]:
    """Send a query; in a pipeline without waiting for it.

    Rows come in binary, which spares decoding bytea.
    """
    return Pending(await connection.execute(query, parameters, binary=True), read)


def columns(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> dict[str, list[Any]]:
    """Return rows as an array a column, the form that `unnest` takes."""
    if not rows:
        return {name: [] for name in names}
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
