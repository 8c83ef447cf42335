"""Packeta (Zásilkovna): answers of its REST API about one packet, in XML or as the JSON that converters make of it.

An answer prints no number: it is read where it was added. A packet that is on its way back says so (`isReturning`). Times are
those of Prague. The carriers that deliver for Packeta in other countries have numbers of their own, which are left out.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.formats import ISO
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child, elements_at, objects_at
from events.parsing.meanings import UNMAPPED, Meaning, meanings, on_the_way_back
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock
from events.parsing.xml import Document, answers, is_xml, read_xml, texts
from events.vocabulary import Status

CODES: Final = meanings("packeta_codes.csv")
CLOCK: Final = Clock(formats=ISO, default_zone="Europe/Prague", prints_home=True)

BACK: Final = "isReturning=true"
ON_THE_WAY: Final = frozenset({Status.PICKED_UP, Status.IN_TRANSIT, Status.OUT_FOR_DELIVERY})

_ROOTS: Final = frozenset({"response", "packetTrackingResponse", "packetStatusResponse"})
_NUMBERS: Final = ("barcode", "packetId")
_STATUS: Final = "statusCode"

Fields = dict[str, str]


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer; one that says that it failed says nothing of scans."""
    records = (
        _from_xml(read_xml(body), rejections)
        if is_xml(body)
        else _from_json(read_json(body), rejections)
    )
    for where, number, fields in records:
        yield from readings_of((_scan(fields, where, received_at),), number, rejections)


def _from_xml(
    document: Document, rejections: Rejections
) -> Iterator[tuple[str, str | None, Fields]]:
    for answer in answers(document):
        if answer.tag not in _ROOTS:
            raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "XML, but no answer of Packeta")
        above = texts(answer)
        if above.get("status") == "fault" or "fault" in above:
            rejections.note_nothing()
            continue
        result = next((each for each in answer if len(each)), answer)
        of_result = texts(result)
        number = _number(of_result) or _number(above)
        if _STATUS in of_result:
            yield result.tag, number, of_result
            continue
        for index, record in elements_at(result, "record", str(result.tag), rejections):
            fields = texts(record)
            yield f"{result.tag}/record[{index}]", _number(fields) or number, fields


def _from_json(body: object, rejections: Rejections) -> Iterator[tuple[str, str | None, Fields]]:
    if body in ({}, []):
        return
    if type(body) is not dict or not {"result", "fault"} & body.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no answer of Packeta")
    if "fault" in body:
        rejections.note_nothing()
        return
    result = child(body, "result")
    number = _number(_printed(result)) or _number(_printed(body))
    if _STATUS in result:
        yield "/result", number, _printed(result)
        return
    for index, record in objects_at(result, "record", "/result", rejections):
        fields = _printed(record)
        yield f"/result/record/{index}", _number(fields) or number, fields


def _printed(of: JsonObject) -> Fields:
    return {name: found for name, value in of.items() if (found := text(value)) is not None}


def _number(fields: Fields) -> str | None:
    return next((fields[name] for name in _NUMBERS if name in fields), None)


def _scan(fields: Fields, where: str, received_at: datetime) -> Scan:
    is_back = fields.get("isReturning") in {"true", "1"}
    raw = Raw(
        code=fields.get(_STATUS) or fields.get("codeText"), further=(BACK,) if is_back else ()
    )
    return Scan(
        where=where,
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(fields.get("dateTime"), received_at=received_at),
        place=place(facility=None if fields.get("branchId") == "0" else fields.get("branchId")),
        description=fields.get("statusText") or fields.get("codeText"),
    )


def _meaning(raw: Raw) -> Meaning:
    meaning = CODES.get((raw.code or "",), UNMAPPED)
    return on_the_way_back(meaning, on_the_way=ON_THE_WAY) if BACK in raw.further else meaning


CARRIER: Final = Carrier(
    carrier_id="packeta",
    name="Packeta",
    number_fields=_NUMBERS,
    normalizers={"1": normalize},
    formats=("REST API XML", "REST API as JSON"),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
