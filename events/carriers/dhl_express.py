"""DHL Express: the tracking answers of XML-PI and of MyDHL (JSON, SOAP), as a poller or a relay posts them.

Checkpoints are local times of the service area. A waybill with one piece is that piece, under the waybill's number; with several, each
piece number is a shipment of its own as well as the waybill. Signatories stand on any scan and count on a delivery only.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from lxml.etree import Element, SubElement, _Element

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import TimeFormats, read_offset
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, as_list, child, objects_at
from events.parsing.meanings import by_code, meanings
from events.parsing.places import country_code, place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import REPLACEMENT, collapse, text, text_unless
from events.parsing.times import Clock
from events.parsing.xml import Document, body_of, is_xml, read_xml, text_at, texts
from events.parsing.zones import is_region

CODES: Final = meanings("dhl_express_codes.csv")
_meaning: Final = by_code(CODES)
CLOCK: Final = Clock(
    formats=TimeFormats("%Y-%m-%d[ %-H:%M[:%S[%f]][ %z]]"),
    default_zone="Europe/Berlin",
    airports=True,
)
ESTIMATES: Final = TimeFormats("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d %H:%M:%S[ GMT%z]")

PLACEHOLDER: Final = frozenset({"string"})
"""Placeholder for a value in DHL's own samples."""

COUNTRY_NAMES: Final = {
    "UK": "GB",
    "UNITED STATES OF AMERICA": "US",
    "NETHERLANDS, THE": "NL",
    "CZECH REPUBLIC, THE": "CZ",
    "PHILIPPINES, THE": "PH",
    "CHINA MAINLAND": "CN",
    "CHINA, PEOPLES REPUBLIC": "CN",
    "HONG KONG SAR, CHINA": "HK",
    "KOREA, REPUBLIC OF (SOUTH K.)": "KR",
    "RUSSIAN FEDERATION, THE": "RU",
    "IRELAND, REPUBLIC OF": "IE",
    "TAIWAN, CHINA": "TW",
}
"""Names that DHL Express prints and the list of countries lacks."""

_ANSWERS: Final = ("TrackingResponse", "ErrorResponse", "trackShipmentRequestResponse", "Fault")
_LISTS: Final = frozenset({"events", "pieces"})
_TWIN: Final = "trackShipmentRequestResponse"
_TWIN_NAMES: Final = frozenset(
    {
        *(
            "trackingResponse",
            "TrackingResponse",
            "AWBInfo",
            "ArrayOfAWBInfoItem",
            "AWBNumber",
            "ShipmentInfo",
            "EstDlvyDate",
        ),
        *(
            "ShipmentEvent",
            "ArrayOfShipmentEventItem",
            "Date",
            "Time",
            "ServiceEvent",
            "EventCode",
            "Description",
            "ServiceArea",
        ),
        *(
            "ServiceAreaCode",
            "Signatory",
            "Pieces",
            "PieceInfo",
            "ArrayOfPieceInfoItem",
            "PieceDetails",
            "LicensePlate",
        ),
        *("PieceEvent", "ArrayOfPieceEventItem"),
    }
)
_NO_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ERROR_FIELDS: Final = frozenset({"title", "detail", "message", "error", "errors", "reasons"})


class DhlCheckpoint(NamedTuple):
    """One checkpoint, from either format. `where` is its pointer in the message."""

    where: str
    code: str | None
    description: str | None
    date: str | None
    time: str | None
    offset: str | None
    area: str | None
    area_name: str | None
    signatory: str | None


class Piece(NamedTuple):
    """One piece of a waybill and its checkpoints. `ordinal` names it where it has no number of its own."""

    number: str | None
    ordinal: str
    scans: tuple[DhlCheckpoint, ...]


class Waybill(NamedTuple):
    """One waybill, from either format."""

    number: str | None
    scans: tuple[DhlCheckpoint, ...]
    pieces: tuple[Piece, ...]
    estimate: str | None
    service: str | None = None


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of a tracking answer of XML-PI or MyDHL."""
    waybills = (
        _from_xml(read_xml(body)) if is_xml(body) else _from_json(read_json(body), rejections)
    )
    for waybill in waybills:
        yield from _waybill(waybill, received_at, rejections)


def _waybill(waybill: Waybill, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    def read(
        scans: Iterable[DhlCheckpoint], number: str | None, piece: str | None = None
    ) -> list[Reading]:
        found = readings_of(
            (_scan(checkpoint, piece, received_at) for checkpoint in scans),
            number,
            rejections,
            service=waybill.service,
        )
        return with_estimate(found, waybill.estimate)

    known = {_identity(scan) for scan in waybill.scans}
    if len(waybill.pieces) == 1:
        only = (scan for scan in waybill.pieces[0].scans if _identity(scan) not in known)
        yield from read((*waybill.scans, *only), waybill.number)
        return
    yield from read(waybill.scans, waybill.number)
    for piece in waybill.pieces:
        if piece.number is not None:
            yield from read(piece.scans, piece.number)
        else:
            yield from read(
                (scan for scan in piece.scans if _identity(scan) not in known),
                waybill.number,
                piece.ordinal,
            )


def _identity(scan: DhlCheckpoint) -> tuple[str | None, ...]:
    return scan.code, scan.date, scan.time, scan.area


def _scan(checkpoint: DhlCheckpoint, piece: str | None, received_at: datetime) -> Scan:
    raw, where = Raw(code=checkpoint.code), _place(checkpoint.area, checkpoint.area_name)
    printed = " ".join(
        part
        for part in (
            checkpoint.date,
            checkpoint.time,
            checkpoint.offset if checkpoint.time else None,
        )
        if part
    )
    return Scan(
        where=checkpoint.where,
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(printed or None, where, received_at=received_at),
        place=where,
        piece=piece,
        description=checkpoint.description,
        signed_by=checkpoint.signatory,
    )


def _place(area: str | None, name: str | None) -> EventPlace:
    """Read `BNE`, `Brisbane-AU`, `Barcelona - Spain` or `NEW YORK CITY GATEWAY,NY-USA`; a name without a country stays whole."""
    before, dash, printed = (name or "").rpartition("-")
    country = _country(printed.strip()) if dash else None
    if country is None:
        return place(city=name, facility=area)
    city, _, state = before.rpartition(",")
    state = state.strip()
    if city and is_region(country, state):
        return place(city=collapse(city), region=state, country=country, facility=area)
    return place(city=collapse(before), country=country, facility=area)


def _country(printed: str) -> str | None:
    found = COUNTRY_NAMES.get(printed.upper()) or country_code(printed)
    return found if found is not None and len(found) == 2 else None


def _from_xml(document: Document) -> Iterator[Waybill]:
    answer = body_of(document)
    if answer is None:
        return
    if not answer.tag.endswith(_ANSWERS) and answer.find(".//AWBInfo") is None:
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of DHL Express"
        )
    yield from _from_answer(answer)


def _from_answer(answer: _Element) -> Iterator[Waybill]:
    for index, info in enumerate(
        info for info in _holders(answer, "AWBNumber") if info.tag != "PieceDetails"
    ):
        where = f"AWBInfo[{index + 1}]"
        yield Waybill(
            number=text_at(info, "AWBNumber"),
            scans=tuple(_xml_scans(info, "ShipmentEvent", where)),
            pieces=tuple(
                Piece(
                    text_at(piece, "PieceDetails/LicensePlate"),
                    str(ordinal),
                    tuple(_xml_scans(piece, "PieceEvent", where)),
                )
                for ordinal, piece in enumerate(_holders(info, "PieceDetails"), start=1)
            ),
            estimate=estimate(text_at(info, "ShipmentInfo/EstDlvyDate"), ESTIMATES),
            service=text_at(info, "ShipmentInfo/GlobalProductCode"),
        )


def _holders(parent: _Element, name: str) -> Iterator[_Element]:
    """Yield the elements under `parent` that have a child `name`, each once however many of it they have."""
    for child_element in parent.iter(name):
        holder = child_element.getparent()
        if holder is not None and holder.find(name) is child_element:
            yield holder


def _xml_scans(parent: _Element, name: str, where: str) -> Iterator[DhlCheckpoint]:
    """Yield the scans under `name`, as XML-PI prints them or, as SOAP does, each in an array item of its own."""
    scans = (
        element
        for event in parent.iter(name)
        for element in (event.findall(f"ArrayOf{name}Item") or [event])
    )
    for index, scan in enumerate(scans):
        fields = texts(scan)
        event, area = scan.find("ServiceEvent"), scan.find("ServiceArea")
        service = {} if event is None else texts(event)
        place_of = {} if area is None else texts(area)
        description = service.get("Description")
        yield DhlCheckpoint(
            where=f"{where}/{name}[{index + 1}]",
            code=service.get("EventCode"),
            description=collapse(description) if description else None,
            date=fields.get("Date"),
            time=fields.get("Time"),
            offset=None,
            area=place_of.get("ServiceAreaCode"),
            area_name=place_of.get("Description"),
            signatory=fields.get("Signatory"),
        )


def _from_json(body: object, rejections: Rejections) -> Iterator[Waybill]:
    if body in ({}, []):
        return
    if type(body) is dict and _TWIN in body:
        answer = Element(_TWIN)
        _grow(answer, child(body, _TWIN))
        yield from _from_answer(answer)
        return
    if type(body) is not dict or ("shipments" not in body and not _ERROR_FIELDS & body.keys()):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of MyDHL")
    for index, shipment in objects_at(body, "shipments", "", rejections):
        where = f"/shipments/{index}"
        yield Waybill(
            number=text_unless(shipment.get("shipmentTrackingNumber"), PLACEHOLDER),
            scans=tuple(_json_scans(shipment, where, rejections)),
            pieces=tuple(
                Piece(
                    text_unless(piece.get("trackingNumber"), PLACEHOLDER),
                    text(piece.get("number")) or str(ordinal + 1),
                    tuple(_json_scans(piece, f"{where}/pieces/{ordinal}", rejections)),
                )
                for ordinal, piece in objects_at(
                    shipment, "pieces", where, rejections, required=False, but=_LISTS
                )
            ),
            estimate=estimate(text(shipment.get("estimatedDeliveryDate")), ESTIMATES),
            service=text_unless(shipment.get("productCode"), PLACEHOLDER),
        )


def _grow(parent: _Element, value: JsonObject) -> None:
    """Append the elements that the JSON twin of the SOAP answer stands for, by their names."""
    for name in (name for name in value if name in _TWIN_NAMES):
        for member in as_list(value[name]):
            if type(member) is dict:
                _grow(SubElement(parent, name), member)
            elif (found := text(member)) is not None:
                SubElement(parent, name).text = _NO_XML.sub(REPLACEMENT, found)


def _json_scans(parent: JsonObject, where: str, rejections: Rejections) -> Iterator[DhlCheckpoint]:
    for index, event in objects_at(
        parent, "events", where, rejections, required="pieces" not in parent
    ):
        if event.get("typeCode") == "string" and event.get("date") == "string":
            continue
        area = child({"serviceArea": as_list(event.get("serviceArea"))[:1]}, "serviceArea")
        offset = text(event.get("GMTOffset"))
        yield DhlCheckpoint(
            where=f"{where}/events/{index}",
            code=text_unless(event.get("typeCode"), PLACEHOLDER),
            description=text_unless(event.get("description"), PLACEHOLDER),
            date=text(event.get("date")),
            time=text(event.get("time")),
            offset=offset if offset is not None and read_offset(offset) is not None else None,
            area=text_unless(area.get("code"), PLACEHOLDER),
            area_name=text_unless(area.get("description"), PLACEHOLDER),
            signatory=text(event.get("signedBy")),
        )


CARRIER: Final = Carrier(
    carrier_id="dhl_express",
    name="DHL Express",
    number_fields=(
        "shipmentTrackingNumber",
        "pieces.trackingNumber",
        "AWBNumber",
        "LicensePlate",
        "childrenShipmentIdentificationNumbers",
    ),
    normalizers={"1": normalize},
    formats=(
        "MyDHL API tracking JSON",
        "MyDHL API tracking SOAP and its JSON twin",
        "XML-PI TrackingResponse",
    ),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
