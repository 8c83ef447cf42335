"""Location of a code's row in a carrier's table, and a patch that adds learned rows.

A row's key is made of what the carrier prints, column by column. Where a table has a column that an event's raw fields do not hold (the
service that DHL bills, say), no row can be named, and the answer says so.
"""

import csv
import difflib
import io
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from events.clear_part import looks_like_code
from events.event import Raw
from events.parsing.meanings import Meaning, Table, meanings
from events.parsing.text import collapse
from events.vocabulary import Kind

FOLDER: Final = "events/carriers"
_KIND: Final = "kind"
_PARTS: Final = ("type", "code", "reason", "text")
_OPTIONAL: Final = frozenset({"reason", "text"})
_ALWAYS: Final = "always:"
_SPELLINGS: Final[Mapping[str, Callable[[str], str]]] = {
    "lower": lambda printed: collapse(printed).casefold(),
    "upper": str.upper,
    "bare": lambda printed: collapse(printed).rstrip(" -").lower(),
    "stated": lambda printed: printed,
}
"""Spelling of what is printed, by table; `stated`: as it is, and a code without it has no row."""

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
"""Key columns of the tables of carriers whose columns are not called after the raw fields."""

_IMPLIED: Final[Mapping[str, str]] = {
    "dhl_parcel_nl": "type",
    "nzpost": "type",
    "poste_italiane": "type",
    "postnl": "type",
    "trackingmore": "type",
}
"""Fields that these print next to a code and the table does not ask for: the code says it all."""

_MORE_DECIDES: Final = frozenset({"dcsa"})
"""Carriers whose rows say less than a mapping: their normalizers ask for more than the row's key."""

_NAMES: Final = {"17track": "seventeentrack"}


class TableRow(NamedTuple):
    """A row of a table by its key; it need not be there."""

    table: str
    key: tuple[str, ...]


class NoTableRow(NamedTuple):
    """Reason why no row can be named."""

    why: str


def row_of(carrier_id: str, raw: Raw, text: str | None) -> TableRow | NoTableRow:
    """Return the row of a code as it is printed; an absent reason or text means any."""
    row = printed_row(carrier_id, raw, text)
    if isinstance(row, NoTableRow):
        return row
    places = [place for place in _optional_places(carrier_id, row.table) if not row.key[place]]
    if any(
        present != row.key and _differ_only(present, row.key, places)
        for present in _table(row.table)
    ):
        return NoTableRow(
            "its table distinguishes texts or reasons of the code: a row for all of them would not hold for those"
        )
    return row


def wider_rows(carrier_id: str, row: TableRow) -> Iterator[TableRow]:
    """Yield the row, and the one for any reason and text of the code."""
    yield row
    optional = _optional_places(carrier_id, row.table)
    yield row._replace(
        key=tuple("" if place in optional else cell for place, cell in enumerate(row.key))
    )


def printed_row(carrier_id: str, raw: Raw, text: str | None) -> TableRow | NoTableRow:
    """Return the row of exactly what is printed, whatever else the table holds of the code."""
    table = f"{_NAMES.get(carrier_id, carrier_id)}_codes.csv"
    if not files("events.carriers").joinpath(table).is_file():
        return NoTableRow("the carrier has no table of codes in the repository")
    if carrier_id == "usps" and raw.code is not None and not looks_like_code(raw.code):
        # where it prints no code its words stand in place of one
        raw, text = raw._replace(code=None), text or raw.code
    columns = _columns(carrier_id, table)
    printed = dict(zip(_PARTS, (raw.type, raw.code, raw.reason, text), strict=True))
    if (why := _refusal(carrier_id, columns, printed)) is not None:
        return NoTableRow(why)
    return TableRow(table, tuple(_cell(column, printed) for column in columns))


def _columns(carrier_id: str, table: str) -> Sequence[str]:
    """Return the key columns."""
    header = next(csv.reader(_text(table).splitlines()))
    return COLUMNS.get(carrier_id, tuple(header[: header.index(_KIND)]))


def _optional_places(carrier_id: str, table: str) -> list[int]:
    return [
        place
        for place, column in enumerate(_columns(carrier_id, table))
        if _source(column) in _OPTIONAL
    ]


def _refusal(
    carrier_id: str, columns: Sequence[str], printed: Mapping[str, str | None]
) -> str | None:
    sources = [_source(column) for column in columns if not column.startswith(_ALWAYS)]
    lost = [
        part
        for part in _PARTS
        if printed[part] is not None and part not in (*sources, _IMPLIED.get(carrier_id))
    ]
    if unknown := [source for source in sources if source not in _PARTS]:
        return f"its table has a column that events do not hold: {', '.join(unknown)}"
    if carrier_id in _MORE_DECIDES:
        return "its normalizer asks for more than the code: no row alone says the same"
    if lost:
        return f"its table has no column for: {', '.join(lost)}"
    if any(column.startswith("stated:") and not printed[_source(column)] for column in columns):
        return "its normalizer asks for the type, too: name it"
    return None


def shipped_meaning(row: TableRow) -> Meaning | None:
    """Return what the table says of the row's key; None if it has no such row."""
    return _table(row.table).get(row.key)


def patch_of(learned: Mapping[TableRow, Meaning]) -> str:
    """Return a unified diff that adds or changes these rows, for `git apply` at the root of the repository; empty if nothing changes."""
    found: list[str] = []
    for table in sorted({row.table for row in learned}):
        before = _text(table).splitlines(keepends=True)
        after = [*before]
        for row, meaning in sorted(learned.items()):
            if row.table == table:
                _put(after, row.key, meaning)
        path = f"{FOLDER}/{table}"
        found += difflib.unified_diff(before, after, f"a/{path}", f"b/{path}")
    return "".join(found)


def _differ_only(present: tuple[str, ...], key: tuple[str, ...], places: Sequence[int]) -> bool:
    return all(
        ours == theirs or place in places
        for place, (ours, theirs) in enumerate(zip(key, present, strict=True))
    )


def _source(column: str) -> str:
    return column.rpartition(":")[2]


def _cell(column: str, printed: Mapping[str, str | None]) -> str:
    if column.startswith(_ALWAYS):
        return _source(column)
    spelling = _SPELLINGS[column.partition(":")[0]] if ":" in column else str
    return spelling(printed[_source(column)] or "")


def _put(lines: list[str], key: tuple[str, ...], meaning: Meaning) -> None:
    """Insert the row in the order of the keys, or wherever that leads in an unordered table. The other lines stay as they are written."""
    width = len(key)
    present = [row[:width] for row in csv.reader(lines)]
    spells_scans = any(row[width] == Kind.SCAN.value for row in csv.reader(lines))
    kind = "" if meaning.kind is Kind.SCAN and not spells_scans else meaning.kind.value
    written = io.StringIO()
    cells = (
        *key,
        kind,
        meaning.status.value if meaning.status else "",
        meaning.reason.value if meaning.reason else "",
    )
    csv.writer(written, lineterminator="\n").writerow(cells)
    if list(key) in present[1:]:
        lines[present.index(list(key), 1)] = written.getvalue()
    else:
        lines.insert(bisect_left(present, list(key), lo=1), written.getvalue())


def _text(table: str) -> str:
    return files("events.carriers").joinpath(table).read_text("utf-8")


@cache
def _table(name: str) -> Table:
    return meanings(name)
