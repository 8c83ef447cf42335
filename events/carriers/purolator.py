"""Purolator: the SOAP answer of its tracking service, by PIN or by reference.

The type of a scan is its code. `Other` is most of them: there the text decides, matched whole.
Times are local to the depot; its name ends with the province.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers import kit

# (type, text): the text in lower case without the dash at its end; empty where every text means the
# same.
CODES: Final = kit.meanings("purolator_codes.csv")

_CLEAR: Final = kit.codes_without_text(CODES)
_WORDED: Final = frozenset(code for code, words in CODES if words)

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%Y-%m-%d[ %H%M%S]", "%Y-%m-%d %H:%M[:%S]", "%Y-%m-%d %H%M", "%Y-%m-%dT%H:%M:%S[%f][%z]"
    ),
    default_zone="America/Toronto",
)


_SHIPMENTS: Final = "shipment"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    if not kit.is_xml(body):
        yield from _rest(kit.read_json(body), received_at, rejections)
        return
    answer = kit.body_of(kit.read_xml(body))
    if answer is None or answer.tag == "Fault":
        return
    if not answer.tag.startswith("TrackPackagesBy"):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of Purolator"
        )
    for index, info in enumerate(answer.iter("TrackingInformation"), start=1):
        scans = _scans(info, f"TrackingInformation[{index}]", received_at, rejections)
        yield from kit.readings_of(scans, kit.text_at(info, "PIN/Value"), rejections)


def _rest(body: object, received_at: datetime, rejections: kit.Rejections) -> Iterator[kit.Reading]:
    """Yield the events of the REST service, which has numeric codes."""
    if type(body) is not dict or _SHIPMENTS not in body:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Purolator"
        )
    for index, shipment in kit.objects_at(body, _SHIPMENTS, "", rejections):
        base = f"/{_SHIPMENTS}/{index}"
        for at, package in kit.objects_at(shipment, "package", base, rejections):
            where = f"{base}/package/{at}"
            yield from kit.readings_of(
                _rest_scans(package, where, received_at, rejections),
                kit.text(package.get("pin")),
                rejections,
            )


def _rest_scans(
    package: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(package, "events", where, rejections):
        location, raw = kit.child(event, "location"), kit.Raw(code=kit.text(event.get("code")))
        at = kit.place(
            city=location.get("city"),
            region=location.get("provinceState"),
            country=location.get("countryCode"),
            facility=kit.text(event.get("terminal")),
        )
        yield kit.Scan(
            where=f"{where}/events/{index}",
            raw=raw,
            meaning=CODES.get((raw.code or "", ""), kit.UNMAPPED),
            time=CLOCK.read(kit.text(event.get("dateTime")), at, received_at=received_at),
            place=at,
            description=kit.text(event.get("description")),
        )


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    code = raw.code or ""
    # `Other` needs its text, which is sealed
    return None if code in _WORDED else _CLEAR.get(code, kit.UNMAPPED)


def _scans(
    info: _Element, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, scan in kit.elements_at(info, "Scans/Scan", where, rejections):
        fields = kit.texts(scan)
        code, words = fields.get("ScanType"), fields.get("Description")
        # depots are Canadian, and named with their province at the end
        where_at = kit.position_in_line(kit.text_at(scan, "Depot/Name"), country="CA")
        date, time = fields.get("ScanDate"), fields.get("ScanTime")
        # the text ends with a dash where a detail would follow
        shape = kit.collapse(words or "").rstrip(" -").lower()
        yield kit.Scan(
            where=f"{where}/Scan[{index}]",
            raw=kit.Raw(code=code),
            meaning=CODES.get((code or "", shape)) or CODES.get((code or "", ""), kit.UNMAPPED),
            time=CLOCK.read(
                f"{date} {time}" if date and time else date, where_at, received_at=received_at
            ),
            place=where_at,
            description=words,
            signed_by=kit.text_at(scan, "ScanDetails/DeliverySignature"),
        )


CARRIER: Final = kit.Carrier(
    carrier_id="purolator",
    name="Purolator",
    number_fields=("PIN.Value", "pin"),
    normalizers={"1": normalize},
    formats=("Tracking service SOAP", "Tracking REST JSON"),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
