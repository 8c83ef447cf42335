"""`statesvc normalize CARRIER FILE --explain`: for each event, which values of the body gave number, code, status, time and the rest.

What may name a person is printed on request only (`--personal`): an explanation is made to be passed on.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from events.attribution import EXISTENCE, FIELDS, AttributedEvent, Attribution
from events.carriers.carrier import Normalizer
from events.event import Reading
from events.identity.ids import carrier_code
from events.parsing.meanings import Table, meanings
from events.vocabulary import TzSource
from statesvc.cli.output import write_json, write_line, write_table

POINTERS_SHOWN: Final = 6
ROWS_SHOWN: Final = 3
MASKED: Final = "(personal)"

_INDEX: Final = re.compile(r"/\d+(?=/|$)|\[\d+\]")
_NAMING: Final = frozenset({"level", "field", "vocabulary"})
"""Columns of tables that say which field of the carrier holds the code."""
_PERSONAL: Final = frozenset({"description", "signed_by", "delivery_address"})
_BASES: Final = {
    TzSource.EXPLICIT: "printed with the time",
    TzSource.PAIR: "the same time printed twice",
    TzSource.LOCATION: "of the place",
    TzSource.CARRIER_DEFAULT: "the carrier's",
    TzSource.ASSUMED_UTC: "assumed, nothing says one",
    TzSource.RECEIVED: "none: the time of receipt",
}


def write_explanation(
    attribution: Attribution, *, normalizer: Normalizer, personal: bool, as_json: bool
) -> None:
    """Print it for people, or as one JSON document."""
    explained = [
        _explained(each, attribution, normalizer, personal=personal) for each in attribution.events
    ]
    if as_json:
        write_json(
            {
                "events": explained,
                "values": attribution.leaves,
                "ignored": list(attribution.ignored),
                "needed": list(attribution.needed),
                "untried": attribution.untried,
                "is_faithful": attribution.is_faithful,
            }
        )
        return
    for number, event in enumerate(explained, 1):
        write_line(f"event {number} of {len(explained)}")
        cells = [(row["field"], row["value"], _shortened(row["from"])) for row in event["fields"]]
        write_table(
            ("FIELD", "VALUE", "FROM"),
            [[cell and _printable(str(cell)) for cell in row] for row in cells],
        )
        for note in event["notes"]:
            write_line(_printable(f"- {note}"))
        write_line("")
    _write_rest(attribution)


def _write_rest(attribution: Attribution) -> None:
    if not attribution.is_faithful:
        write_line(
            "where it comes from is not known: the body cannot be printed again so that it reads the same"
        )
        return
    if attribution.needed:
        write_line(_printable(f"unreadable without: {_shortened(attribution.needed)}"))
    write_line(f"ignored, {len(attribution.ignored)} of {attribution.leaves} values:")
    for pointer, count in Counter(
        _INDEX.sub(_starred, pointer) for pointer in attribution.ignored
    ).items():
        write_line(_printable(f"  {pointer}{f' ({count})' if count > 1 else ''}"))
    if attribution.untried:
        write_line(f"not tried, for the body is too large: the last {attribution.untried} values")


def _explained(
    each: AttributedEvent, attribution: Attribution, normalizer: Normalizer, *, personal: bool
) -> dict[str, Any]:
    values = _values(each, personal=personal)
    fields = [
        {"field": name, "value": values[name], "from": list(each.origins.get(name, ()))}
        for name in FIELDS
        if values[name] is not None or name in each.origins
    ]
    return {
        "event_id": each.event.event_id,
        "fields": fields,
        "notes": list(_notes(each, attribution, normalizer)),
    }


def _values(each: AttributedEvent, *, personal: bool) -> dict[str, object]:
    reading, event, place = each.reading, each.event, each.reading.place
    status = event.status or event.kind
    values: dict[str, object] = {
        "number": reading.tracking_number,
        "piece": reading.piece or reading.discriminator or None,
        "code": carrier_code(reading.raw if personal else event.raw),
        "status": f"{status}, {event.reason}" if event.reason else str(status),
        "time": f"{event.occurred_at_raw or '-'} is {event.occurred_at.isoformat()}",
        "zone": _BASES[event.tz_source]
        if event.raw_zone is None
        else f"{_BASES[event.tz_source]}: {event.raw_zone}",
        "precision": str(event.time_precision),
        "place": " ".join(part for part in (place.city, place.region, place.country) if part)
        or None,
        "estimated_delivery": event.estimated_delivery,
        "service": event.service,
        "description": reading.description,
        "signed_by": reading.signed_by,
        "delivery_address": reading.delivery_address,
        "parcel_carrier_id": event.parcel_carrier_id,
        "corrects": event.corrects,
        "event_id": event.event_id,
    }
    return (
        values
        if personal
        else {
            name: MASKED if name in _PERSONAL and value else value for name, value in values.items()
        }
    )


def _notes(
    each: AttributedEvent, attribution: Attribution, normalizer: Normalizer
) -> Iterable[str]:
    reading = each.reading
    if reading.by_category:
        yield "the status is that of the category: no table has the finer code"
    elif reading.status is None and reading.kind == "unmapped":
        yield "no table has this code: `statesvc carriers map` says what it means"
    pointers = [*each.origins.get("status", ()), *each.origins.get("code", ())]
    rows = table_rows(
        normalizer, reading, {pointer: attribution.values[pointer] for pointer in pointers}
    )
    if rows:
        yield f"the row of the table: {'; or '.join(rows)}"
    if existence := each.origins.get(EXISTENCE):
        yield f"no event without: {_shortened(existence)}"


def table_rows(normalizer: Normalizer, reading: Reading, values: Mapping[str, object]) -> list[str]:
    """Return the rows of the carrier's tables whose keys the scan prints and whose meaning it has, those with the most of it.

    `values`: by pointer, what gave the status. A column such as `level` names a field: the last part of a pointer.
    """
    module = normalizer.__module__.rpartition(".")[2]
    printed = (
        reading.raw.type,
        reading.raw.code,
        reading.raw.reason,
        *reading.raw.further,
        reading.description,
        *values.values(),
    )
    words = {form for word in printed if word is not None for form in _forms(str(word))}
    names = {_INDEX.sub("", pointer).rpartition("/")[2].casefold() for pointer in values}
    found: list[tuple[int, str]] = []
    for file, (columns, table) in _tables(module).items():
        for key, meaning in table.items():
            parts = [
                (column, part.casefold())
                for column, part in zip(columns, key, strict=False)
                if part
            ]
            codes = [part for column, part in parts if column not in _NAMING]
            fits = (meaning.kind, meaning.status, meaning.reason) == (
                reading.kind,
                reading.status,
                reading.reason,
            )
            if fits and codes and words.issuperset(codes):
                found.append(
                    (
                        sum(part in words or part in names for _, part in parts),
                        f"{','.join(key)} of {file}",
                    )
                )
    most = max((count for count, _ in found), default=0)
    return [row for count, row in found if count == most][:ROWS_SHOWN]


@cache
def _tables(module: str) -> dict[str, tuple[list[str], Table]]:
    """Return, by name of the file, the tables next to a carrier's module: their columns and rows."""
    found: dict[str, tuple[list[str], Table]] = {}
    for entry in sorted(files("events.carriers").iterdir(), key=lambda entry: entry.name):
        if entry.name.startswith(f"{module}_") and entry.name.endswith(".csv"):
            columns = entry.read_text("utf-8").partition("\n")[0].strip().split(",")
            if "kind" in columns:
                found[entry.name] = (columns, meanings(entry.name))
    return found


def _forms(word: str) -> Iterable[str]:
    """Return a word as tables write it: in lower case, with blanks, without the full stop."""
    plain = " ".join(word.casefold().split())
    return plain, plain.replace("_", " "), plain.rstrip("."), re.sub(r"[\s_-]", "", plain)


def _starred(index: re.Match[str]) -> str:
    return "/*" if index[0].startswith("/") else "[*]"


def _shortened(pointers: Sequence[str]) -> str | None:
    shown = ", ".join(pointers[:POINTERS_SHOWN])
    return (
        f"{shown} and {len(pointers) - POINTERS_SHOWN} more"
        if len(pointers) > POINTERS_SHOWN
        else shown or None
    )


def _printable(text: str) -> str:
    """Return a body's own names and words, without what a terminal would obey."""
    return "".join(sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in text)
