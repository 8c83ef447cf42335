"""Correios (Brazil): answers of its tracking services.

SRO Rastro (JSON), the app's JSON, and the older SOAP with its JSON twin. An event is a type and a
status below it (`BDE`, `01`; older answers print `1`). Times are local to the unit; the app names a
zone. Abroad a unit is a country. Type `EST` retracts the event before it. BDE/09 once meant that an
item was not found, and now that it has not reached its unit: there the text decides.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from lxml.etree import _Element

from events.carriers import kit

# (type, status of two digits).
CODES: Final = kit.meanings("correios_codes.csv")

# once `not found`, now `has not reached its unit`: the code alone does not tell which
CHANGED: Final = ("BDE", "09")
NOT_FOUND: Final = "objeto não localizado"
LOST: Final = kit.Meaning(kit.Kind.SCAN, kit.Status.EXCEPTION, kit.Reason.LOST)

FORMATS: Final = kit.TimeFormats("%d/%m/%Y[ %H:%M[:%S]]")
CLOCK: Final = kit.Clock(formats=FORMATS, default_zone="America/Sao_Paulo", country="BR")

_LISTS: Final = ("objetos", "objeto")
_EVENTS: Final = ("eventos", "evento")
# Placeholders for the state of a unit abroad.
_NO_STATES: Final = frozenset({"BR", "--"})
_ERROR_FIELDS: Final = frozenset({"msgs", "mensagem", "erro", "causa"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    found = (
        _from_xml(kit.read_xml(body), rejections)
        if kit.is_xml(body)
        else _from_json(kit.read_json(body), rejections)
    )
    for where, parcel in found:
        service = kit.text(kit.child(parcel, "tipoPostal").get("categoria"))
        number = kit.text(parcel.get("codObjeto")) or kit.text(parcel.get("numero"))
        scans = kit.readings_of(
            _scans(parcel, where, received_at, rejections), number, rejections, service=service
        )
        yield from kit.with_estimate(
            scans, kit.estimate(kit.text(parcel.get("dtPrevista")), FORMATS)
        )


def _from_xml(
    document: kit.Document, rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject]]:
    for answer in kit.answers(document):
        if (
            answer.tag != "Fault"
            and not answer.tag.startswith("buscaEventos")
            and answer.tag != "rastro"
        ):
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of Correios"
            )
        for _, holder in ((0, answer), *kit.elements(answer, "return")):
            for index, parcel in kit.elements(holder, "objeto"):
                where, fields = f"objeto[{index + 1}]", dict[str, Any](kit.texts(parcel))
                yield (
                    where,
                    {
                        **fields,
                        "evento": [
                            _event(event)
                            for _, event in kit.elements_at(parcel, "evento", where, rejections)
                        ],
                    },
                )


def _event(event: _Element) -> kit.JsonObject:
    return {**kit.texts(event), "recebedor": {"nome": event.findtext("recebedor")}}


def _from_json(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is not dict:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Correios"
        )
    listed = next((name for name in _LISTS if name in body), None)
    if listed is not None:
        for index, parcel in kit.objects_at(body, listed, "", rejections):
            yield f"/{listed}/{index}", parcel
    elif "codObjeto" in body:
        yield "", body
    elif not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Correios"
        )


def _scans(
    parcel: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    listed = next((name for name in _EVENTS if name in parcel), _EVENTS[0])
    for index, event in kit.objects_at(parcel, listed, where, rejections):
        # the older answers call the type `tipo` and what is below it `status`; the newer ones
        # `codigo` and `tipo`
        older = "status" in event
        raw = kit.Raw(
            type=kit.text(event.get("tipo" if older else "codigo")),
            code=kit.text(event.get("status" if older else "tipo")),
        )
        unit = kit.child(event, "unidade") or event
        where_at = _place(unit)
        yield kit.Scan(
            where=f"{where}/{listed}/{index}",
            raw=raw,
            meaning=_worded(raw, kit.text(event.get("descricao"))),
            time=_time(event, where_at, received_at),
            place=where_at,
            description=kit.text(event.get("descricao")),
            signed_by=kit.child(event, "recebedor").get("nome"),
        )


def _worded(raw: kit.Raw, words: str | None) -> kit.Meaning:
    is_lost = (raw.type, (raw.code or "").zfill(2)) == CHANGED and (
        words or ""
    ).casefold().startswith(NOT_FOUND)
    return LOST if is_lost else _meaning(raw)


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    # the text decides, and is sealed
    return None if (raw.type, (raw.code or "").zfill(2)) == CHANGED else _meaning(raw)


def _meaning(raw: kit.Raw) -> kit.Meaning:
    event, status = raw.type or "", raw.code or ""
    # older answers print `1` for `01`
    return CODES.get((event, status)) or CODES.get((event, status.zfill(2)), kit.UNMAPPED)


def _time(
    event: kit.JsonObject, where_at: kit.EventPlace, received_at: datetime
) -> kit.PrintedTime | None:
    created = event.get("dtHrCriado")
    # the app prints the time as an object with the name of its zone
    if type(created) is dict:
        return CLOCK.read_with_offset(
            kit.text(created.get("date")),
            kit.text(created.get("timezone")),
            where_at,
            received_at=received_at,
        )
    printed = (
        kit.text(created)
        or " ".join(
            part for part in (kit.text(event.get("data")), kit.text(event.get("hora"))) if part
        )
        or None
    )
    return CLOCK.read(printed, where_at, received_at=received_at)


def _place(unit: kit.JsonObject) -> kit.EventPlace:
    """Return a city and its state; without a city the unit is a country or an
    office that only has a name.
    """
    address = kit.child(unit, "endereco") or unit
    city, name = (
        kit.text(address.get("cidade")),
        kit.text(unit.get("nome")) or kit.text(unit.get("local")),
    )
    if city is not None:
        state = kit.text(address.get("uf"))
        return kit.place(city=city, region=None if state in _NO_STATES else state, country="BR")
    country = kit.country_code(name)
    return (
        # abroad a unit is a country; at home it may be an office without a city
        kit.place(country=country) if country in kit.known_countries() else kit.place(facility=name)
    )


CARRIER: Final = kit.Carrier(
    carrier_id="correios",
    name="Correios",
    number_fields=("codObjeto", "numero"),
    normalizers={"1": normalize},
    formats=("SRO Rastro JSON", "Rastro SOAP"),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
