"""Named queries, arrays as their parameters, and answers of a pipeline.

A `.sql` file beside its module holds `-- name: some_query` blocks, whose first comment line states
their purpose; parameters are psycopg's `%(name)s` (text) or `%(name)b` (binary, for arrays).
`-- part: some_part` is text that the blocks after it share: `{some_part}`.

psycopg dumps an array member by member, each through a dumper of its own; a worker sends eighty
members an event. Here whole columns are encoded in PostgreSQL's binary form, at a third of the
cost. The type of an array is that of the query's own cast (`%(ids)b::uuid[]`).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from importlib.resources import files
from struct import Struct, pack
from typing import Any, Final, Generic, LiteralString, Protocol, TypeVar, cast
from uuid import UUID

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format

_BLOCK = re.compile(r"^-- (name|part): (\w+)\n", re.MULTILINE)


class Queries(Mapping[str, LiteralString]):
    def __init__(self, text: str, origin: str) -> None:
        _, *blocks = _BLOCK.split(text)
        names = blocks[1::3]
        duplicated = {name for name in names if names.count(name) > 1}
        if duplicated:
            raise ValueError(f"{origin}: query names stand twice: {', '.join(sorted(duplicated))}")
        self._queries: dict[str, LiteralString] = {}
        parts: dict[str, str] = {}
        for kind, name, body in zip(blocks[::3], names, blocks[2::3], strict=True):
            whole = body.strip().rstrip(";")
            for part, shared in parts.items():
                whole = whole.replace(f"{{{part}}}", shared)
            if kind == "part":
                parts[name] = whole
            else:
                self._queries[name] = cast("LiteralString", whole)

    def __getitem__(self, name: str) -> LiteralString:
        return self._queries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)


@cache
def queries(package: str, name: str) -> Queries:
    """Load the queries of `name`.sql in `package` (a module's `__package__`)."""
    resource = files(package) / f"{name}.sql"
    return Queries(resource.read_text("utf-8"), f"{package}/{name}.sql")


Encoder = Callable[[Sequence[Any]], "Array"]
# Parameter names and member types, in the order of a row's fields.
Columns = Mapping[str, Encoder]

_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_BOOL, _BYTEA, _INT4, _TEXT, _TIMESTAMPTZ, _UUID = (
    psycopg.adapters.types[name].oid
    for name in ("bool", "bytea", "int4", "text", "timestamptz", "uuid")
)
_length: Final = Struct("!i").pack
_NULL: Final = _length(-1)
_TRUE: Final = _length(1) + b"\1"
_FALSE: Final = _length(1) + b"\0"


class Array(bytes):
    __slots__ = ()


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Array) -> Buffer:
        return obj


psycopg.adapters.register_dumper(Array, _ArrayDumper)


def encoded(rows: Iterable[Sequence[Any]], names: Columns) -> dict[str, Array]:
    """Encode rows as an array a column, the form that `unnest` takes."""
    members = list(zip(*rows, strict=True)) or [()] * len(names)
    return {
        name: encode(column) for (name, encode), column in zip(names.items(), members, strict=True)
    }


def uuids(members: Sequence[UUID]) -> Array:
    """Encode an array of `uuid` without NULL."""
    size = _length(16)
    return _array(
        _UUID, len(members), size + size.join([member.int.to_bytes(16) for member in members])
    )


def uuids_or_null(members: Sequence[UUID | None]) -> Array:
    size = _length(16)
    return _array(
        _UUID,
        len(members),
        b"".join([_NULL if member is None else size + member.bytes for member in members]),
    )


def texts(members: Sequence[str | None]) -> Array:
    sized = [
        _NULL if member is None else _length(len(text := member.encode())) + text
        for member in members
    ]
    return _array(_TEXT, len(members), b"".join(sized))


def byteas(members: Sequence[bytes | None]) -> Array:
    parts: list[bytes] = []
    for member in members:
        if member is None:
            parts.append(_NULL)
        else:
            parts.append(_length(len(member)))
            parts.append(member)
    return _array(_BYTEA, len(members), b"".join(parts))


def ints(members: Sequence[int]) -> Array:
    """Encode an array of `int` without NULL."""
    sized = [4] * (2 * len(members))
    sized[1::2] = members
    return _array(_INT4, len(members), pack(f"!{len(sized)}i", *sized))


def bools(members: Sequence[bool]) -> Array:
    """Encode an array of `bool` without NULL."""
    return _array(
        _BOOL, len(members), b"".join([_TRUE if member else _FALSE for member in members])
    )


def timestamps(members: Sequence[datetime | None]) -> Array:
    """Encode an array of `timestamptz`, from times with an offset."""
    return _array(
        _TIMESTAMPTZ,
        len(members),
        b"".join([_NULL if member is None else _time(member) for member in members]),
    )


@lru_cache(maxsize=4096)
def _time(instant: datetime) -> bytes:
    """Encode a time; cached, because a batch repeats its times."""
    return pack("!iq", 8, (instant - _EPOCH) // _MICROSECOND)


def _array(oid: int, count: int, members: bytes) -> Array:
    """Encode dimensions, NULL flag, type, size and first index.

    Then each member after its length.
    """
    if not count:
        return Array(pack("!iiI", 0, 0, oid))
    return Array(pack("!iiIii", 1, 1, oid, count, 1) + members)


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
