"""Whole columns as arrays in PostgreSQL's binary form, at a third of psycopg's cost.

psycopg dumps an array member by member, each through a dumper of its own; a worker sends eighty
members an event. The type of an array is that of the query's own cast (`%(ids)b::uuid[]`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from struct import Struct, pack
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format

Encoder = Callable[[Sequence[Any]], "Array"]
Columns = Mapping[str, Encoder]
"""Parameter names and member types, in the order of a row's fields."""

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
