"""Correios (Brazil): answers of its tracking services: SRO Rastro (JSON), the app's JSON, and the older SOAP with its JSON twin.

An event is a type and a status below it (`BDE`, `01`; older answers print `1`). Times are local to the unit; the app names a zone. Abroad a
unit is a country. Type `EST` takes back the event before it. BDE/09 said once that an item was not found, and says now that it has not
reached its unit: there the text decides.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from lxml.etree import _Element

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, PrintedTime, Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child, elements_at, objects_at
from events.parsing.meanings import UNMAPPED, Meaning, meanings
from events.parsing.places import country_code, known_countries, place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock
from events.parsing.xml import Document, answers, elements, is_xml, read_xml, texts
from events.vocabulary import Kind, Reason, Status

CODES: Final = meanings("correios_codes.csv")
"""(type, status of two digits)."""

CHANGED: Final = ("BDE", "09")
NOT_FOUND: Final = "objeto não localizado"
LOST: Final = Meaning(Kind.SCAN, Status.EXCEPTION, Reason.LOST)

FORMATS: Final = TimeFormats("%d/%m/%Y[ %H:%M[:%S]]")
CLOCK: Final = Clock(formats=FORMATS, default_zone="America/Sao_Paulo", country="BR")

_LISTS: Final = ("objetos", "objeto")
_EVENTS: Final = ("eventos", "evento")
_NO_STATES: Final = frozenset({"BR", "--"})
"""Placeholders for the state of a unit abroad."""
_ERROR_FIELDS: Final = frozenset({"msgs", "mensagem", "erro", "causa"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    found = (
        _from_xml(read_xml(body), rejections)
        if is_xml(body)
        else _from_json(read_json(body), rejections)
    )
    for where, parcel in found:
        service = text(child(parcel, "tipoPostal").get("categoria"))
        number = text(parcel.get("codObjeto")) or text(parcel.get("numero"))
        scans = readings_of(
            _scans(parcel, where, received_at, rejections), number, rejections, service=service
        )
        yield from with_estimate(scans, estimate(text(parcel.get("dtPrevista")), FORMATS))


def _from_xml(document: Document, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    for answer in answers(document):
        if (
            answer.tag != "Fault"
            and not answer.tag.startswith("buscaEventos")
            and answer.tag != "rastro"
        ):
            raise UnreadableMessageError(
                Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of Correios"
            )
        for _, holder in ((0, answer), *elements(answer, "return")):
            for index, parcel in elements(holder, "objeto"):
                where, fields = f"objeto[{index + 1}]", dict[str, Any](texts(parcel))
                yield (
                    where,
                    {
                        **fields,
                        "evento": [
                            _event(event)
                            for _, event in elements_at(parcel, "evento", where, rejections)
                        ],
                    },
                )


def _event(event: _Element) -> JsonObject:
    return {**texts(event), "recebedor": {"nome": event.findtext("recebedor")}}


def _from_json(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is not dict:
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Correios"
        )
    listed = next((name for name in _LISTS if name in body), None)
    if listed is not None:
        for index, parcel in objects_at(body, listed, "", rejections):
            yield f"/{listed}/{index}", parcel
    elif "codObjeto" in body:
        yield "", body
    elif not _ERROR_FIELDS & body.keys():
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Correios"
        )


def _scans(
    parcel: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    listed = next((name for name in _EVENTS if name in parcel), _EVENTS[0])
    for index, event in objects_at(parcel, listed, where, rejections):
        older = "status" in event
        raw = Raw(
            type=text(event.get("tipo" if older else "codigo")),
            code=text(event.get("status" if older else "tipo")),
        )
        unit = child(event, "unidade") or event
        where_at = _place(unit)
        yield Scan(
            where=f"{where}/{listed}/{index}",
            raw=raw,
            meaning=_worded(raw, text(event.get("descricao"))),
            time=_time(event, where_at, received_at),
            place=where_at,
            description=text(event.get("descricao")),
            signed_by=child(event, "recebedor").get("nome"),
        )


def _worded(raw: Raw, words: str | None) -> Meaning:
    is_lost = (raw.type, (raw.code or "").zfill(2)) == CHANGED and (
        words or ""
    ).casefold().startswith(NOT_FOUND)
    return LOST if is_lost else _meaning(raw)


def _reread(raw: Raw) -> Meaning | None:
    return None if (raw.type, (raw.code or "").zfill(2)) == CHANGED else _meaning(raw)


def _meaning(raw: Raw) -> Meaning:
    event, status = raw.type or "", raw.code or ""
    return CODES.get((event, status)) or CODES.get((event, status.zfill(2)), UNMAPPED)


def _time(event: JsonObject, where_at: EventPlace, received_at: datetime) -> PrintedTime | None:
    created = event.get("dtHrCriado")
    if type(created) is dict:
        return CLOCK.read_with_offset(
            text(created.get("date")),
            text(created.get("timezone")),
            where_at,
            received_at=received_at,
        )
    printed = (
        text(created)
        or " ".join(part for part in (text(event.get("data")), text(event.get("hora"))) if part)
        or None
    )
    return CLOCK.read(printed, where_at, received_at=received_at)


def _place(unit: JsonObject) -> EventPlace:
    """Return a city and its state; without a city the unit is a country or an office that only has a name."""
    address = child(unit, "endereco") or unit
    city, name = text(address.get("cidade")), text(unit.get("nome")) or text(unit.get("local"))
    if city is not None:
        state = text(address.get("uf"))
        return place(city=city, region=None if state in _NO_STATES else state, country="BR")
    country = country_code(name)
    return place(country=country) if country in known_countries() else place(facility=name)


CARRIER: Final = Carrier(
    carrier_id="correios",
    name="Correios",
    number_fields=("codObjeto", "numero"),
    normalizers={"1": normalize},
    formats=("SRO Rastro JSON", "Rastro SOAP"),
    reread=_reread,
    authentication=(ShipperChoice(),),
)
