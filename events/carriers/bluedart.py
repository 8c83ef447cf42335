"""Blue Dart (India): pushes and tracking answers, as JSON and as XML with the same names.

A scan is identified by its group (S: scans of the network, T: statuses) and a code of three digits,
which is meaningless without the group. An unknown code is read by its text; a text after `RTO` is a
return to the sender, as are the scans of type RT. Unified Tracking prints the same texts for this
service. Times are Indian. A push of the kind Lite is a list of shipments that are each a single
scan.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from lxml.etree import _Element

from events.carriers import kit
from events.parsing.dhl_group import BLUEDART_TEXTS, bluedart_text

CODES: Final = kit.meanings("bluedart_codes.csv")

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%-d-%-m-%Y[ %-H:%M[:%S]]", "%-d-%-m-%Y %H%M", "%-d-%b-%Y %H%M", "%-d %b %Y %H%M"
    ),
    default_zone="Asia/Kolkata",
    country="IN",
)
BACK: Final = "RT"
_ON_THE_WAY: Final = frozenset(
    {kit.Status.PICKED_UP, kit.Status.IN_TRANSIT, kit.Status.OUT_FOR_DELIVERY}
)
_DIGITS: Final = re.compile(r"\d{1,3}", re.ASCII)
_WRAPPERS: Final = ("statustracking", "ShipmentData")
_ERRORS: Final = frozenset({"Error", "error", "error-response", "Errors", "title"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    found = _in_xml(body) if kit.is_xml(body) else _in_json(kit.read_json(body), "", rejections)
    for where, shipment in found:
        number = kit.text(shipment.get("WaybillNo")) or kit.text(shipment.get("@WaybillNo"))
        details = kit.child(shipment, "Scans").get("ScanDetail", shipment.get("ScanDetail"))
        pointer = f"{where}/Scans/ScanDetail"
        scans = [
            (f"{pointer}/{index}", scan)
            for index, scan in kit.objects(details, pointer, rejections)
        ]
        # a push of the kind Lite: the shipment is its only scan
        if details is None and kit.text(shipment.get("Scan")):
            scans = [(where, shipment)]
        elif not scans and not kit.as_list(details) and kit.text(shipment.get("Status")):
            scans = [(f"{where}/Status", _of_status(shipment))]
        elif not {"Scans", "ScanDetail", *_ERRORS} & shipment.keys():
            rejections.add(f"{where}/Scans", kit.NO_CONTAINER)
        signed_by = kit.child(shipment, "Scans", "DeliveryDetails").get(
            "ReceivedBy"
        ) or shipment.get("ReceivedBy")
        for at, scan in scans:
            yield from kit.reading_of(_scan(scan, at, signed_by, received_at), number, rejections)


def _scan(scan: kit.JsonObject, where: str, signed_by: object, received_at: datetime) -> kit.Scan:
    words = kit.text(scan.get("Scan"))
    code, kind = kit.text(scan.get("ScanCode")), kit.text(scan.get("ScanType"))
    raw = kit.Raw(
        type=kit.text(scan.get("ScanGroupType")), code=code, further=(kind,) if kind else ()
    )
    printed = (
        f"{kit.text(scan.get('ScanDate')) or ''} {(kit.text(scan.get('ScanTime')) or '')}".strip()
    )
    return kit.Scan(
        where=where,
        raw=raw,
        meaning=_by_code(raw)
        or _on_its_way(bluedart_text(kit.collapse(words or "")) or kit.UNMAPPED, raw),
        time=CLOCK.read(printed or None, received_at=received_at),
        place=kit.place(
            city=kit.text(scan.get("ScannedLocationCity")) or kit.text(scan.get("ScannedLocation")),
            country="IN",
            facility=kit.text(scan.get("ScannedLocationCode")),
        ),
        description=words,
        signed_by=kit.text(scan.get("ReceivedBy")) or signed_by,
    )


def _by_code(raw: kit.Raw) -> kit.Meaning | None:
    code = raw.code or ""
    # JSON prints codes as numbers, without their leading zeros
    found = CODES.get((raw.type or "T", code.zfill(3) if _DIGITS.fullmatch(code) else code))
    return None if found is None else _on_its_way(found, raw)


def _on_its_way(meaning: kit.Meaning, raw: kit.Raw) -> kit.Meaning:
    return kit.on_the_way_back(meaning, on_the_way=_ON_THE_WAY) if BACK in raw.further else meaning


def _of_status(shipment: kit.JsonObject) -> kit.JsonObject:
    """Return the state of a shipment without scans, as a scan."""
    return {
        "Scan": shipment.get("Status"),
        "ScanType": shipment.get("StatusType"),
        "ScanDate": shipment.get("StatusDate"),
        "ScanTime": shipment.get("StatusTime"),
        "ReceivedBy": shipment.get("ReceivedBy"),
    }


def _in_json(
    body: object, where: str, rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject]]:
    """Yield the shipments with their pointers, in any wrapper."""
    if type(body) is list and (where or any(type(member) is dict for member in body)):
        for index, member in kit.objects(body, where, rejections):
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
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of Blue Dart"
        )
    if inside is None:
        if not _ERRORS & body.keys():
            yield where, body
    elif kit.as_list(body[inside]):
        yield from _in_json(body[inside], f"{where}/{inside}", rejections)
    else:
        rejections.note_nothing()


def _in_xml(body: bytes) -> Iterator[tuple[str, kit.JsonObject]]:
    for answer in kit.answers(kit.read_xml(body)):
        if answer.tag != "ShipmentData":
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "XML, but no tracking of Blue Dart"
            )
        for index, shipment in enumerate(answer.iterfind("Shipment"), start=1):
            yield f"Shipment[{index}]", _as_json(shipment)


def _as_json(shipment: _Element) -> kit.JsonObject:
    found: dict[str, Any] = dict(kit.texts(shipment))
    found["@WaybillNo"] = shipment.get("WaybillNo")
    found["Scans"] = {
        "ScanDetail": [kit.texts(scan) for scan in shipment.iterfind("Scans/ScanDetail")]
    }
    return found


CARRIER: Final = kit.Carrier(
    carrier_id="bluedart",
    name="Blue Dart",
    number_fields=("WaybillNo|@WaybillNo", "Shipment.@WaybillNo"),
    normalizers={"1": normalize},
    formats=("Status push JSON", "Push Lite JSON", "Tracking answer JSON", "Tracking answer XML"),
    reread=_by_code,
    texts=kit.texts_of(CODES, BLUEDART_TEXTS),
    authentication=(kit.ShipperChoice(),),
)
