"""Location of a code's row in a carrier's table.

A row's key consists of printed fields, column by column. Where a table has a column that an event's
raw fields lack (the service that DHL bills, say), no row can be named.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Final, NamedTuple

from events.clear_part import looks_like_code
from events.event import Raw
from events.parsing.text import collapse

_KIND: Final = "kind"
_PARTS: Final = ("type", "code", "reason", "text")
_OPTIONAL: Final = frozenset({"reason", "text"})
_ALWAYS: Final = "always:"
# Normalisation of printed codes, by table. `stated`: as it is, and an absent code has no row.
_SPELLINGS: Final[Mapping[str, Callable[[str], str]]] = {
    "lower": lambda printed: collapse(printed).casefold(),
    "upper": str.upper,
    "bare": lambda printed: collapse(printed).rstrip(" -").lower(),
    "stated": lambda printed: printed,
}

# Key columns of carriers' tables that are not named after the raw fields.
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "aftership": ("always:subtag", "code"),
    "amazon": ("reason", "code"),
    "australiapost": ("always:event", "lower:text"),
    "austrianpost": ("type", "code", "reason"),
    "bluedart": ("stated:type", "code"),
    "canadapost": ("code", "lower:text"),
    "cdek": ("type", "code", "reason"),
    "chronopost": ("always:event", "code"),
    "delhivery": ("type", "lower:code"),
    "dhl_parcel_de": ("stated:type", "code", "reason"),
    "dhl_parcel_nl": ("always:status", "code"),
    "doordash": ("upper:code",),
    "easyship": ("lower:code",),
    "fedex": ("upper:code", "upper:reason"),
    "ghtk": ("code", "reason"),
    "gls": ("always:event", "code"),
    "ics_courier": ("lower:text",),
    "landmark": ("always:event", "code"),
    "laposte": ("always:event", "code", "lower:text"),
    "nzpost": ("always:code", "lower:code"),
    "pitney_bowes": ("always:return", "code"),
    "poste_italiane": ("always:status", "code"),
    "postnord": ("stated:type",),
    "purolator": ("code", "bare:text"),
    "royalmail": ("always:event", "code"),
    "sendle": ("lower:code",),
    "ship24": ("always:code", "code"),
    "teleship": ("lower:code",),
    "tnt": ("always:status", "code"),
    "trackingmore": ("lower:code",),
    "usps": ("code", "lower:text"),
    "veho": ("lower:code",),
    "viettelpost": ("code", "reason"),
}

# Fields printed next to a code that the table omits, as the code implies them.
_IMPLIED: Final[Mapping[str, str]] = {
    "dhl_parcel_nl": "type",
    "nzpost": "type",
    "postnl": "type",
    "trackingmore": "type",
}

# Carriers with rows coarser than a mapping: their normalizers need more than the row's key.
_MORE_DECIDES: Final = frozenset({"dcsa"})

_NAMES: Final = {"17track": "seventeentrack"}


class TableRow(NamedTuple):
    """A row of a table by its key; it need not be there."""

    table: str
    key: tuple[str, ...]


def wider_rows(carrier_id: str, row: TableRow) -> Iterator[TableRow]:
    """Yield the row, and the row for any reason and text of the code."""
    yield row
    optional = _optional_places(carrier_id, row.table)
    yield row._replace(
        key=tuple("" if place in optional else cell for place, cell in enumerate(row.key))
    )


def printed_row(carrier_id: str, raw: Raw, text: str | None) -> TableRow | None:
    """Return the row of the printed fields; None where the table has no key for them."""
    table = f"{_NAMES.get(carrier_id, carrier_id)}_codes.csv"
    if not files("events.carriers").joinpath(table).is_file():
        return None
    if carrier_id == "usps" and raw.code is not None and not looks_like_code(raw.code):
        # where it prints no code its words stand in place of one
        raw, text = raw._replace(code=None), text or raw.code
    columns = _columns(carrier_id, table)
    printed = dict(zip(_PARTS, (raw.type, raw.code, raw.reason, text), strict=True))
    if not _has_key(carrier_id, columns, printed):
        return None
    return TableRow(table, tuple(_cell(column, printed) for column in columns))


def _columns(carrier_id: str, table: str) -> Sequence[str]:
    header = next(csv.reader(_text(table).splitlines()))
    return COLUMNS.get(carrier_id, tuple(header[: header.index(_KIND)]))


def _optional_places(carrier_id: str, table: str) -> list[int]:
    return [
        place
        for place, column in enumerate(_columns(carrier_id, table))
        if _source(column) in _OPTIONAL
    ]


def _has_key(carrier_id: str, columns: Sequence[str], printed: Mapping[str, str | None]) -> bool:
    """Return whether the columns are exactly the printed fields."""
    sources = [_source(column) for column in columns if not column.startswith(_ALWAYS)]
    keyed = {*sources, _IMPLIED.get(carrier_id)}
    return (
        carrier_id not in _MORE_DECIDES
        and set(sources) <= set(_PARTS)
        and all(part in keyed for part in _PARTS if printed[part] is not None)
        and all(printed[_source(column)] for column in columns if column.startswith("stated:"))
    )


def _source(column: str) -> str:
    return column.rpartition(":")[2]


def _cell(column: str, printed: Mapping[str, str | None]) -> str:
    if column.startswith(_ALWAYS):
        return _source(column)
    spelling = _SPELLINGS[column.partition(":")[0]] if ":" in column else str
    return spelling(printed[_source(column)] or "")


def _text(table: str) -> str:
    return files("events.carriers").joinpath(table).read_text("utf-8")
