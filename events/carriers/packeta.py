"""Packeta (Zásilkovna): answers of its REST API about a packet, in XML or converted to JSON.

An answer prints no number: it is read where it was added. A packet on its way back has
`isReturning`. Times are those of Prague. The carriers that deliver for Packeta in other countries
have numbers of their own, which are left out.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("packeta_codes.csv")
CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="Europe/Prague", prints_home=True)

BACK: Final = "isReturning=true"
ON_THE_WAY: Final = frozenset(
    {kit.Status.PICKED_UP, kit.Status.IN_TRANSIT, kit.Status.OUT_FOR_DELIVERY}
)

_ROOTS: Final = frozenset({"response", "packetTrackingResponse", "packetStatusResponse"})
_NUMBERS: Final = ("barcode", "packetId")
_STATUS: Final = "statusCode"

Fields = dict[str, str]


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Yield the events of an answer; a failed answer has none."""
    records = (
        _from_xml(kit.read_xml(body), rejections)
        if kit.is_xml(body)
        else _from_json(kit.read_json(body), rejections)
    )
    for where, number, fields in records:
        yield from kit.readings_of((_scan(fields, where, received_at),), number, rejections)


def _from_xml(
    document: kit.Document, rejections: kit.Rejections
) -> Iterator[tuple[str, str | None, Fields]]:
    for answer in kit.answers(document):
        if answer.tag not in _ROOTS:
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "XML, but no answer of Packeta"
            )
        above = kit.texts(answer)
        # a fault is about the request, an unknown number for one
        if above.get("status") == "fault" or "fault" in above:
            rejections.note_nothing()
            continue
        result = next((each for each in answer if len(each)), answer)
        of_result = kit.texts(result)
        number = _number(of_result) or _number(above)
        if _STATUS in of_result:
            yield result.tag, number, of_result
            continue
        for index, record in kit.elements_at(result, "record", str(result.tag), rejections):
            fields = kit.texts(record)
            yield f"{result.tag}/record[{index}]", _number(fields) or number, fields


def _from_json(
    body: object, rejections: kit.Rejections
) -> Iterator[tuple[str, str | None, Fields]]:
    if type(body) is not dict or not {"result", "fault"} & body.keys():
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "JSON, but no answer of Packeta")
    if "fault" in body:
        rejections.note_nothing()
        return
    result = kit.child(body, "result")
    number = _number(_printed(result)) or _number(_printed(body))
    if _STATUS in result:
        yield "/result", number, _printed(result)
        return
    for index, record in kit.objects_at(result, "record", "/result", rejections):
        fields = _printed(record)
        yield f"/result/record/{index}", _number(fields) or number, fields


def _printed(of: kit.JsonObject) -> Fields:
    return {name: found for name, value in of.items() if (found := kit.text(value)) is not None}


def _number(fields: Fields) -> str | None:
    return next((fields[name] for name in _NUMBERS if name in fields), None)


def _scan(fields: Fields, where: str, received_at: datetime) -> kit.Scan:
    is_back = fields.get("isReturning") in {"true", "1"}
    raw = kit.Raw(
        code=fields.get(_STATUS) or fields.get("codeText"), further=(BACK,) if is_back else ()
    )
    return kit.Scan(
        where=where,
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(fields.get("dateTime"), received_at=received_at),
        # 0 stands for no branch
        place=kit.place(facility=None if fields.get("branchId") == "0" else fields.get("branchId")),
        description=fields.get("statusText") or fields.get("codeText"),
    )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    meaning = CODES.get((raw.code or "",), kit.UNMAPPED)
    return kit.on_the_way_back(meaning, on_the_way=ON_THE_WAY) if BACK in raw.further else meaning


CARRIER: Final = kit.Carrier(
    carrier_id="packeta",
    name="Packeta",
    number_fields=_NUMBERS,
    normalizers={"1": normalize},
    formats=("REST API XML", "REST API as JSON"),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
