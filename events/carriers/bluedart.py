"""Blue Dart (India): pushes and tracking answers, as JSON and as XML with the same names.

A scan is said by its group (S: scans of the network, T: statuses) and a code of three digits, which mean nothing without the group. Where
a code is not known, the text is; what stands behind `RTO` goes back to the sender, as do the scans of type RT. Unified Tracking prints the
same texts for this service. Times are Indian.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from lxml.etree import _Element

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.dhl_group import BLUEDART_TEXTS, bluedart_text
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, as_list, child, objects
from events.parsing.meanings import UNMAPPED, Meaning, meanings, on_the_way_back, texts_of
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of
from events.parsing.text import collapse, text
from events.parsing.times import Clock
from events.parsing.xml import answers, is_xml, read_xml, texts
from events.vocabulary import Status

CODES: Final = meanings("bluedart_codes.csv")

CLOCK: Final = Clock(
    formats=TimeFormats(
        "%-d-%-m-%Y[ %-H:%M[:%S]]", "%-d-%-m-%Y %H%M", "%-d-%b-%Y %H%M", "%-d %b %Y %H%M"
    ),
    default_zone="Asia/Kolkata",
    country="IN",
)
BACK: Final = "RT"
_ON_THE_WAY: Final = frozenset({Status.PICKED_UP, Status.IN_TRANSIT, Status.OUT_FOR_DELIVERY})
_DIGITS: Final = re.compile(r"\d{1,3}", re.ASCII)
_WRAPPERS: Final = ("statustracking", "ShipmentData")
_ERRORS: Final = frozenset({"Error", "error", "error-response", "Errors", "title"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    found = _in_xml(body) if is_xml(body) else _in_json(read_json(body), "", rejections)
    for where, shipment in found:
        number = text(shipment.get("WaybillNo")) or text(shipment.get("@WaybillNo"))
        details = child(shipment, "Scans").get("ScanDetail", shipment.get("ScanDetail"))
        pointer = f"{where}/Scans/ScanDetail"
        scans = [
            (f"{pointer}/{index}", scan) for index, scan in objects(details, pointer, rejections)
        ]
        if not scans and not as_list(details) and text(shipment.get("Status")):
            scans = [(f"{where}/Status", _of_status(shipment))]
        signed_by = child(shipment, "Scans", "DeliveryDetails").get("ReceivedBy") or shipment.get(
            "ReceivedBy"
        )
        for at, scan in scans:
            yield from reading_of(_scan(scan, at, signed_by, received_at), number, rejections)


def _scan(scan: JsonObject, where: str, signed_by: object, received_at: datetime) -> Scan:
    words = text(scan.get("Scan"))
    code, kind = text(scan.get("ScanCode")), text(scan.get("ScanType"))
    raw = Raw(type=text(scan.get("ScanGroupType")), code=code, further=(kind,) if kind else ())
    printed = f"{text(scan.get('ScanDate')) or ''} {(text(scan.get('ScanTime')) or '')}".strip()
    return Scan(
        where=where,
        raw=raw,
        meaning=_by_code(raw) or _on_its_way(bluedart_text(collapse(words or "")) or UNMAPPED, raw),
        time=CLOCK.read(printed or None, received_at=received_at),
        place=place(
            city=text(scan.get("ScannedLocationCity")) or text(scan.get("ScannedLocation")),
            country="IN",
            facility=text(scan.get("ScannedLocationCode")),
        ),
        description=words,
        signed_by=text(scan.get("ReceivedBy")) or signed_by,
    )


def _by_code(raw: Raw) -> Meaning | None:
    code = raw.code or ""
    found = CODES.get((raw.type or "T", code.zfill(3) if _DIGITS.fullmatch(code) else code))
    return None if found is None else _on_its_way(found, raw)


def _on_its_way(meaning: Meaning, raw: Raw) -> Meaning:
    return on_the_way_back(meaning, on_the_way=_ON_THE_WAY) if BACK in raw.further else meaning


def _of_status(shipment: JsonObject) -> JsonObject:
    """Return the state of a shipment without scans, as a scan."""
    return {
        "Scan": shipment.get("Status"),
        "ScanType": shipment.get("StatusType"),
        "ScanDate": shipment.get("StatusDate"),
        "ScanTime": shipment.get("StatusTime"),
        "ReceivedBy": shipment.get("ReceivedBy"),
    }


def _in_json(body: object, where: str, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    """Yield the shipments with their pointers, whatever wraps them."""
    if body in ({}, []):
        return
    if type(body) is list and (where or any(type(member) is dict for member in body)):
        for index, member in objects(body, where, rejections):
            yield from _in_json(member, f"{where}/{index}", rejections)
        return
    inside = next(
        (name for name in (*_WRAPPERS, "Shipment") if type(body) is dict and name in body), None
    )
    if type(body) is not dict or (
        inside is None
        and not {"WaybillNo", "@WaybillNo"} & body.keys()
        and not _ERRORS & body.keys()
    ):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no tracking of Blue Dart")
    if inside is None:
        if not _ERRORS & body.keys():
            yield where, body
    elif as_list(body[inside]):
        yield from _in_json(body[inside], f"{where}/{inside}", rejections)


def _in_xml(body: bytes) -> Iterator[tuple[str, JsonObject]]:
    for answer in answers(read_xml(body)):
        if answer.tag != "ShipmentData":
            raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "XML, but no tracking of Blue Dart")
        for index, shipment in enumerate(answer.iterfind("Shipment"), start=1):
            yield f"Shipment[{index}]", _as_json(shipment)


def _as_json(shipment: _Element) -> JsonObject:
    found: dict[str, Any] = dict(texts(shipment))
    found["@WaybillNo"] = shipment.get("WaybillNo")
    found["Scans"] = {"ScanDetail": [texts(scan) for scan in shipment.iterfind("Scans/ScanDetail")]}
    return found


CARRIER: Final = Carrier(
    carrier_id="bluedart",
    name="Blue Dart",
    number_fields=("WaybillNo|@WaybillNo", "Shipment.@WaybillNo"),
    normalizers={"1": normalize},
    formats=("Status push JSON", "Tracking answer JSON", "Tracking answer XML"),
    reread=_by_code,
    texts=texts_of(CODES, BLUEDART_TEXTS),
    authentication=(ShipperChoice(),),
)
