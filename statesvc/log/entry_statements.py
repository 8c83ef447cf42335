"""Statements for each kind of entry, made from a `.sql` template and the table of kinds."""

from collections.abc import Iterable, Mapping
from typing import Final, LiteralString

from psycopg.sql import SQL, Composable, Identifier, Placeholder

from statesvc.log.entry_kinds import ENTRY_KINDS, EntryKind

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
