"""DHL Express: the tracking answers of XML-PI and of MyDHL (JSON, SOAP), from a poller or relay.

Checkpoints are local times of the service area. A waybill with a single piece is that piece, under
the waybill's number; with several, each piece number is a shipment of its own as well as the
waybill. Signatories are printed on any scan and count on a delivery only.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from lxml.etree import Element, SubElement, _Element

from events.carriers import kit

CODES: Final = kit.meanings("dhl_express_codes.csv")
_meaning: Final = kit.by_code(CODES)
CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%Y-%m-%d[ %-H:%M[:%S[%f]][ %z]]"),
    default_zone="Europe/Berlin",
    # service areas are named by the codes of their airports (`BNE`)
    airports=True,
)
ESTIMATES: Final = kit.TimeFormats(
    "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d %H:%M:%S[ GMT%z]"
)

# Placeholder for a value in DHL's own samples.
PLACEHOLDER: Final = frozenset({"string"})

# Names that DHL Express prints and the list of countries lacks.
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

_ANSWERS: Final = ("TrackingResponse", "ErrorResponse", "trackShipmentRequestResponse", "Fault")
_LISTS: Final = frozenset({"events", "pieces"})
_TWIN: Final = "trackShipmentRequestResponse"
# a closed list: the members' names become elements, and a sender's own names must not
_TWIN_NAMES: Final = frozenset(
    {
        "trackingResponse",
        "TrackingResponse",
        "AWBInfo",
        "ArrayOfAWBInfoItem",
        "AWBNumber",
        "ShipmentInfo",
        "EstDlvyDate",
        "ShipmentEvent",
        "ArrayOfShipmentEventItem",
        "Date",
        "Time",
        "ServiceEvent",
        "EventCode",
        "Description",
        "ServiceArea",
        "ServiceAreaCode",
        "Signatory",
        "Pieces",
        "PieceInfo",
        "ArrayOfPieceInfoItem",
        "PieceDetails",
        "LicensePlate",
        "PieceEvent",
        "ArrayOfPieceEventItem",
    }
)
# what XML 1.0 forbids even escaped; lxml raises ValueError for it
_NO_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ERROR_FIELDS: Final = frozenset({"title", "detail", "message", "error", "errors", "reasons"})


class DhlCheckpoint(NamedTuple):
    """A checkpoint, from either format. `where` is its pointer in the message."""

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
    """A piece of a waybill and its checkpoints. `ordinal` names a piece without a number."""

    number: str | None
    ordinal: str
    scans: tuple[DhlCheckpoint, ...]


class Waybill(NamedTuple):
    number: str | None
    scans: tuple[DhlCheckpoint, ...]
    pieces: tuple[Piece, ...]
    estimate: str | None
    service: str | None = None


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Yield the events of a tracking answer of XML-PI or MyDHL."""
    waybills = (
        _from_xml(kit.read_xml(body))
        if kit.is_xml(body)
        else _from_json(kit.read_json(body), rejections)
    )
    for waybill in waybills:
        yield from _waybill(waybill, received_at, rejections)


def _waybill(
    waybill: Waybill, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    def read(
        scans: Iterable[DhlCheckpoint], number: str | None, piece: str | None = None
    ) -> list[kit.Reading]:
        found = kit.readings_of(
            (_scan(checkpoint, piece, received_at) for checkpoint in scans),
            number,
            rejections,
            service=waybill.service,
        )
        return kit.with_estimate(found, waybill.estimate)

    known = {_identity(scan) for scan in waybill.scans}
    if len(waybill.pieces) == 1:
        # a single piece repeats the waybill's checkpoints under its own number
        only = (scan for scan in waybill.pieces[0].scans if _identity(scan) not in known)
        yield from read((*waybill.scans, *only), waybill.number)
        return
    # several pieces: one of them may be delivered before the others, so each is a shipment of its
    # own
    yield from read(waybill.scans, waybill.number)
    for piece in waybill.pieces:
        if piece.number is not None:
            yield from read(piece.scans, piece.number)
        else:
            yield from read(
                # a piece without a number cannot be a shipment: only what the waybill does not
                # print is added
                (scan for scan in piece.scans if _identity(scan) not in known),
                waybill.number,
                piece.ordinal,
            )


def _identity(scan: DhlCheckpoint) -> tuple[str | None, ...]:
    # without the text and the signer, which only one of the two copies may have
    return scan.code, scan.date, scan.time, scan.area


def _scan(checkpoint: DhlCheckpoint, piece: str | None, received_at: datetime) -> kit.Scan:
    raw, where = kit.Raw(code=checkpoint.code), _place(checkpoint.area, checkpoint.area_name)
    printed = " ".join(
        part
        for part in (
            checkpoint.date,
            checkpoint.time,
            # an offset behind a bare date is in no format
            checkpoint.offset if checkpoint.time else None,
        )
        if part
    )
    return kit.Scan(
        where=checkpoint.where,
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(printed or None, where, received_at=received_at),
        place=where,
        piece=piece,
        description=checkpoint.description,
        signed_by=checkpoint.signatory,
    )


def _place(area: str | None, name: str | None) -> kit.EventPlace:
    """Read `BNE`, `Brisbane-AU`, `Barcelona - Spain` or `NEW YORK CITY GATEWAY,NY-USA`; a name
    without a country stays whole.
    """
    # from the right: names of cities have hyphens too
    before, dash, printed = (name or "").rpartition("-")
    country = _country(printed.strip()) if dash else None
    # a name whose last part is no country keeps its hyphen: `Saint-Denis` is one word
    if country is None:
        return kit.place(city=name, facility=area)
    city, _, state = before.rpartition(",")
    state = state.strip()
    # a comma is not always before a state: only a region that the country has is split off
    if city and kit.is_region(country, state):
        return kit.place(city=kit.collapse(city), region=state, country=country, facility=area)
    return kit.place(city=kit.collapse(before), country=country, facility=area)


def _country(printed: str) -> str | None:
    found = COUNTRY_NAMES.get(printed.upper()) or kit.country_code(printed)
    # an unknown name comes back as printed
    return found if found is not None and len(found) == 2 else None


def _from_xml(document: kit.Document) -> Iterator[Waybill]:
    answer = kit.body_of(document)
    if answer is None:
        return
    if not answer.tag.endswith(_ANSWERS) and answer.find(".//AWBInfo") is None:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of DHL Express"
        )
    yield from _from_answer(answer)


def _from_answer(answer: _Element) -> Iterator[Waybill]:
    # a piece's details repeat the number of the waybill, and are no waybill
    for index, info in enumerate(
        info for info in _holders(answer, "AWBNumber") if info.tag != "PieceDetails"
    ):
        where = f"AWBInfo[{index + 1}]"
        yield Waybill(
            number=kit.text_at(info, "AWBNumber"),
            scans=tuple(_xml_scans(info, "ShipmentEvent", where)),
            pieces=tuple(
                Piece(
                    kit.text_at(piece, "PieceDetails/LicensePlate"),
                    str(ordinal),
                    tuple(_xml_scans(piece, "PieceEvent", where)),
                )
                for ordinal, piece in enumerate(_holders(info, "PieceDetails"), start=1)
            ),
            estimate=kit.estimate(kit.text_at(info, "ShipmentInfo/EstDlvyDate"), ESTIMATES),
            service=kit.text_at(info, "ShipmentInfo/GlobalProductCode"),
        )


def _holders(parent: _Element, name: str) -> Iterator[_Element]:
    """Yield the elements under `parent` that have a child `name`, each once however many of it they
    have.
    """
    for child_element in parent.iter(name):
        holder = child_element.getparent()
        # the first of its kind there: a holder with several is yielded once
        if holder is not None and holder.find(name) is child_element:
            yield holder


def _xml_scans(parent: _Element, name: str, where: str) -> Iterator[DhlCheckpoint]:
    """Yield the scans under `name`, as XML-PI prints them or, as SOAP does, each in an
    array item of its own.
    """
    scans = (
        element
        for event in parent.iter(name)
        # SOAP wraps every scan in an item of an array, XML-PI does not
        for element in (event.findall(f"ArrayOf{name}Item") or [event])
    )
    for index, scan in enumerate(scans):
        fields = kit.texts(scan)
        event, area = scan.find("ServiceEvent"), scan.find("ServiceArea")
        service = {} if event is None else kit.texts(event)
        place_of = {} if area is None else kit.texts(area)
        description = service.get("Description")
        yield DhlCheckpoint(
            where=f"{where}/{name}[{index + 1}]",
            code=service.get("EventCode"),
            # XML-PI prints runs of blanks within a text
            description=kit.collapse(description) if description else None,
            date=fields.get("Date"),
            time=fields.get("Time"),
            offset=None,
            area=place_of.get("ServiceAreaCode"),
            area_name=place_of.get("Description"),
            signatory=fields.get("Signatory"),
        )


def _from_json(body: object, rejections: kit.Rejections) -> Iterator[Waybill]:
    # the same answer as SOAP, in JSON: grown into elements, it is read by one reader
    if type(body) is dict and _TWIN in body:
        answer = Element(_TWIN)
        _grow(answer, kit.child(body, _TWIN))
        yield from _from_answer(answer)
        return
    if type(body) is not dict or ("shipments" not in body and not _ERROR_FIELDS & body.keys()):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of MyDHL"
        )
    for index, shipment in kit.objects_at(body, "shipments", "", rejections):
        where = f"/shipments/{index}"
        yield Waybill(
            number=kit.text_unless(shipment.get("shipmentTrackingNumber"), PLACEHOLDER),
            scans=tuple(_json_scans(shipment, where, rejections)),
            pieces=tuple(
                Piece(
                    kit.text_unless(piece.get("trackingNumber"), PLACEHOLDER),
                    kit.text(piece.get("number")) or str(ordinal + 1),
                    tuple(_json_scans(piece, f"{where}/pieces/{ordinal}", rejections)),
                )
                for ordinal, piece in kit.objects_at(
                    shipment, "pieces", where, rejections, required=False, but=_LISTS
                )
            ),
            estimate=kit.estimate(kit.text(shipment.get("estimatedDeliveryDate")), ESTIMATES),
            service=kit.text_unless(shipment.get("productCode"), PLACEHOLDER),
        )


def _grow(parent: _Element, value: kit.JsonObject) -> None:
    """Append, by their names, the elements of the JSON twin of the SOAP answer."""
    for name in (name for name in value if name in _TWIN_NAMES):
        for member in kit.as_list(value[name]):
            if type(member) is dict:
                _grow(SubElement(parent, name), member)
            elif (found := kit.text(member)) is not None:
                # lxml refuses control characters, which JSON may hold
                SubElement(parent, name).text = _NO_XML.sub(kit.REPLACEMENT, found)


def _json_scans(
    parent: kit.JsonObject, where: str, rejections: kit.Rejections
) -> Iterator[DhlCheckpoint]:
    for index, event in kit.objects_at(
        parent, "events", where, rejections, required="pieces" not in parent
    ):
        # DHL's own sample answer, which its sandbox sends
        if event.get("typeCode") == "string" and event.get("date") == "string":
            continue
        # a list by its form, though a scan has one area
        area = kit.child({"serviceArea": kit.as_list(event.get("serviceArea"))[:1]}, "serviceArea")
        offset = kit.text(event.get("GMTOffset"))
        yield DhlCheckpoint(
            where=f"{where}/events/{index}",
            code=kit.text_unless(event.get("typeCode"), PLACEHOLDER),
            description=kit.text_unless(event.get("description"), PLACEHOLDER),
            date=kit.text(event.get("date")),
            time=kit.text(event.get("time")),
            # an offset that cannot be read must not make the whole time unreadable
            offset=offset if offset is not None and kit.read_offset(offset) is not None else None,
            area=kit.text_unless(area.get("code"), PLACEHOLDER),
            area_name=kit.text_unless(area.get("description"), PLACEHOLDER),
            signatory=kit.text(event.get("signedBy")),
        )


CARRIER: Final = kit.Carrier(
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
    authentication=(kit.ShipperChoice(),),
)
