"""Correos (Spain): answers of its tracking, one parcel or a list of them.

`localizador`, and `trackpub` with English names. An event's date and time are fields of their own,
by the clock of the mainland; its only place is an office.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("correos_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%d/%m/%Y[ %H:%M[:%S]]"), default_zone="Europe/Madrid", country="ES"
)

_NUMBER: Final = "codEnvio"
_ENGLISH_NUMBER: Final = "code"
_ENGLISH: Final = frozenset({_ENGLISH_NUMBER, "events"})
_SPANISH: Final = ("eventos", "codEvento", "fecEvento", "horEvento", "desTextoResumen", "unidad")
_TRANSLATED: Final = ("events", "eventCode", "eventDate", "eventHours", "summaryText", "unit")
_ERROR_FIELDS: Final = frozenset({"error", "codError", "moreInformation"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, parcel in _parcels(kit.read_json(body), rejections):
        is_english = parcel.keys() >= _ENGLISH
        number = kit.text(parcel.get(_ENGLISH_NUMBER if is_english else _NUMBER))
        names = _TRANSLATED if is_english else _SPANISH
        yield from kit.readings_of(
            _scans(parcel, where, names, received_at, rejections), number, rejections
        )


def _parcels(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{index}", parcel) for index, parcel in _listed(body, rejections)]
    )
    if not any(
        parcel.keys() & {_NUMBER, *_ERROR_FIELDS} or parcel.keys() >= _ENGLISH
        for _, parcel in found
    ):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Correos"
        )
    yield from found


def _listed(body: object, rejections: kit.Rejections) -> list[tuple[int, kit.JsonObject]]:
    return kit.objects(body, "", rejections) if type(body) is list else []


def _scans(
    parcel: kit.JsonObject,
    where: str,
    names: tuple[str, ...],
    received_at: datetime,
    rejections: kit.Rejections,
) -> Iterator[kit.Scan]:
    listed, code, date, hour, words, unit = names
    for index, event in kit.objects_at(parcel, listed, where, rejections):
        raw = kit.Raw(code=kit.text(event.get(code)))
        printed = (
            " ".join(
                part for part in (kit.text(event.get(date)), kit.text(event.get(hour))) if part
            )
            or None
        )
        yield kit.Scan(
            where=f"{where}/{listed}/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(printed, received_at=received_at),
            place=kit.place(facility=event.get(unit)),
            description=kit.text(event.get(words)) or kit.text(event.get("eventDes")),
        )


CARRIER: Final = kit.Carrier(
    carrier_id="correos",
    name="Correos",
    number_fields=(_NUMBER, _ENGLISH_NUMBER),
    normalizers={"1": normalize},
    formats=("Localizador JSON", "Trackpub JSON"),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
