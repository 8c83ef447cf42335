"""An entry of the log as a row: the columns that the database and the files share. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final, LiteralString, Self

import orjson
from psycopg.sql import SQL, Composable, Identifier, Placeholder

from events.entry.kinds import EntryName, leaf_hash_of
from statesvc.log.entry_kinds import ENTRY_KINDS, EntryKind
from statesvc.log.json_compression import compress_json, decompress_json

_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_TARGET: Final = "shipment "
# Index of a kind's first column in a row; before it are batch, ordinal, canonical bytes and sealed
# part.
FIRST_VALUE: Final = 4
TIMES: Final = frozenset({"recorded_at", "received_at", "occurred_at", "since", "started_at"})


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One row of `kind`.

    `values`: the kind's file columns in order, ids as text, times as datetimes.
    """

    index: int
    kind: EntryKind
    batch_id: int
    ordinal: int
    leaf_hash: bytes
    canonical: bytes = field(repr=False)
    sealed_part: bytes | None = field(repr=False)
    values: tuple[Any, ...] = field(repr=False)

    @property
    def sound(self) -> bool:
        """True if the bytes are those that the hash is of."""
        return sha256(b"\x00" + self.canonical).digest() == self.leaf_hash

    @classmethod
    def of(cls, kind: EntryKind, index: int, row: Sequence[Any]) -> Self:
        """Make it from a table row: batch, ordinal, stored bytes, sealed part.

        Raises ValueError for a row that is no entry of the kind.
        """
        batch_id, ordinal, stored, sealed_part = row
        canonical = decompress_json(stored)
        values = zip(kind.file_columns, kind.file_values(kind.decode(canonical)), strict=True)
        timed = tuple(_parameter(name, value) for name, value in values)
        return cls(
            index, kind, batch_id, ordinal, leaf_hash_of(canonical), canonical, sealed_part, timed
        )

    @property
    def counted(self) -> tuple[Any, ...]:
        """Row as the verifier's statements select it, with the columns of a file: times in
        microseconds since 2000.
        """
        values = [
            (value - _EPOCH) // _MICROSECOND if isinstance(value, datetime) else value
            for value in self.values
        ]
        return (self.batch_id, self.ordinal, self.canonical, self.sealed_part, *values)

    @property
    def row(self) -> tuple[Any, ...]:
        """Row to restore: its position, its bytes as a table has them, and the table's columns."""
        values = zip(
            self.kind.columns, self.kind.expected(self.kind.decode(self.canonical)), strict=True
        )
        stored = (
            self.canonical if self.kind.name == EntryName.ACTION else compress_json(self.canonical)
        )
        return (
            self.batch_id,
            self.ordinal,
            stored,
            self.sealed_part,
            *(_parameter(name, value) for name, value in values),
        )

    def shipments(self) -> tuple[str, ...]:
        named = dict(zip(self.kind.file_columns, self.values, strict=True))
        if self.kind.name == EntryName.ACTION:
            target = named["target"]
            return (target.removeprefix(_TARGET),) if target.startswith(_TARGET) else ()
        found = (named["shipment_id"], named.get("claimed_shipment_id"))
        return tuple(dict.fromkeys(each for each in found if each is not None))


def _parameter(name: str, value: Any) -> Any:  # noqa: ANN401 - of a column
    """Convert a value to the type that statements and files take."""
    if value is None:
        return None
    if name in TIMES:
        return _EPOCH + value * _MICROSECOND
    return orjson.dumps(value).decode() if name == "tries" else value


_AS_IT_IS: Final = SQL("{}")
_UUID: Final = SQL("{}::text"), SQL("{}::uuid")
# Read and write expressions of columns that differ in type from the document.
_FORMS: Final[Mapping[str, tuple[SQL, SQL]]] = {
    "shipment_id": _UUID,
    "claimed_shipment_id": _UUID,
    "message_id": _UUID,
    "subscription_id": _UUID,
    "facts_digest": (SQL("encode({}, 'hex')"), SQL("decode({}, 'hex')")),
    "subscriptions": (
        SQL("array_to_string({}, ' ')"),
        SQL("string_to_array({}, ' ')::uuid[]"),
    ),
    "tries": (_AS_IT_IS, SQL("{}::jsonb")),
}


def entry_statements(template: LiteralString) -> dict[str, bytes]:
    """Fill in a template, by kind.

    `{table}`; `{sealed_part}`: its column, or NULL; `{values}`: the kind's columns, as
    `EntryKind.expected` has them; `{columns}` and `{parameters}`: all of a row to insert;
    `{unique}`: the key of the table.
    """
    return {kind.name: _statement(template, kind) for kind in ENTRY_KINDS}


def _statement(template: LiteralString, kind: EntryKind) -> bytes:
    sealed_part = ("sealed_part",) if kind.sealed else ()
    stored = ("batch_id", "ordinal", "canonical", *sealed_part, *kind.columns)
    return (
        SQL(template)
        .format(
            table=Identifier("statesvc", kind.name),
            sealed_part=Identifier("sealed_part") if kind.sealed else SQL("NULL::bytea"),
            values=_listed(_form(name, 0).format(Identifier(name)) for name in kind.columns),
            columns=_listed(map(Identifier, stored)),
            parameters=_listed(_form(name, 1).format(Placeholder(name)) for name in stored),
            unique=_listed(map(Identifier, kind.unique)),
        )
        .as_bytes()
    )


def _form(name: str, which: int) -> SQL:
    return _FORMS[name][which] if name in _FORMS else _AS_IT_IS


def _listed(parts: Iterable[Composable]) -> Composable:
    return SQL(", ").join(parts)
