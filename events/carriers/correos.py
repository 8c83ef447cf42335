"""Correos (Spain): answers of its tracking (`localizador`, and `trackpub` with English names), one parcel or a list of them.

An event's date and time are fields of their own, by the clock of the mainland, and name no place but an office.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, objects, objects_at
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("correos_codes.csv")
_meaning: Final = by_code(CODES)

CLOCK: Final = Clock(
    formats=TimeFormats("%d/%m/%Y[ %H:%M[:%S]]"), default_zone="Europe/Madrid", country="ES"
)

_NUMBER: Final = "codEnvio"
_ENGLISH_NUMBER: Final = "code"
_ENGLISH: Final = frozenset({_ENGLISH_NUMBER, "events"})
_SPANISH: Final = ("eventos", "codEvento", "fecEvento", "horEvento", "desTextoResumen", "unidad")
_TRANSLATED: Final = ("events", "eventCode", "eventDate", "eventHours", "summaryText", "unit")
_ERROR_FIELDS: Final = frozenset({"error", "codError", "moreInformation"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    for where, parcel in _parcels(read_json(body), rejections):
        is_english = parcel.keys() >= _ENGLISH
        number = text(parcel.get(_ENGLISH_NUMBER if is_english else _NUMBER))
        names = _TRANSLATED if is_english else _SPANISH
        yield from readings_of(
            _scans(parcel, where, names, received_at, rejections), number, rejections
        )


def _parcels(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{index}", parcel) for index, parcel in _listed(body, rejections)]
    )
    if not any(
        parcel.keys() & {_NUMBER, *_ERROR_FIELDS} or parcel.keys() >= _ENGLISH
        for _, parcel in found
    ):
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Correos"
        )
    yield from found


def _listed(body: object, rejections: Rejections) -> list[tuple[int, JsonObject]]:
    return objects(body, "", rejections) if type(body) is list else []


def _scans(
    parcel: JsonObject,
    where: str,
    names: tuple[str, ...],
    received_at: datetime,
    rejections: Rejections,
) -> Iterator[Scan]:
    listed, code, date, hour, words, unit = names
    for index, event in objects_at(parcel, listed, where, rejections):
        raw = Raw(code=text(event.get(code)))
        printed = (
            " ".join(part for part in (text(event.get(date)), text(event.get(hour))) if part)
            or None
        )
        yield Scan(
            where=f"{where}/{listed}/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(printed, received_at=received_at),
            place=place(facility=event.get(unit)),
            description=text(event.get(words)) or text(event.get("eventDes")),
        )


CARRIER: Final = Carrier(
    carrier_id="correos",
    name="Correos",
    number_fields=(_NUMBER, _ENGLISH_NUMBER),
    normalizers={"1": normalize},
    formats=("Localizador JSON", "Trackpub JSON"),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
