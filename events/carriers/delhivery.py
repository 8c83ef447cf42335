"""Delhivery: scan pushes and tracking answers. `Status` is the newest scan; `Scans` repeat it, or hold only the older ones.

The code is the status type (UD forward, RT return, PU and PP reverse pickup, DL, CN) with the status word: one word means another thing
on the way back. On the way forward an NSL code of the table says more than the word (`Pending` with EOD-74 is a refusal at the door);
`lists/delhivery_nsl_codes.csv` says of the others why the word stands. Times are Indian.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child, objects, objects_at, recognised
from events.parsing.meanings import UNMAPPED, Meaning, meanings, texts_of
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("delhivery_codes.csv")
"""(type, word in lower case); the word alone where it means the same on every way."""

NSL_CODES: Final = meanings("delhivery_nsl_codes.csv")
"""The NSL codes whose meaning is finer than the status word, which is the same `Pending` or `Not Picked` for all of them."""

_SHIPMENT: Final = frozenset({"Shipment"})
_FORWARD: Final = frozenset({None, "UD"})

CLOCK: Final = Clock(
    formats=TimeFormats(
        "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S[%f]]]", "%-d/%-m/%Y[ %H:%M[:%S]]"
    ),
    default_zone="Asia/Kolkata",
    country="IN",
)


class DelhiveryScan(NamedTuple):
    """One scan, from the status or from the list."""

    where: str
    type: str | None
    word: str | None
    at: str | None
    city: str | None
    words: str | None
    code: str | None
    signatory: str | None


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    for where, shipment in _shipments(read_json(body), rejections):
        number = text(shipment.get("AWB")) or text(shipment.get("Waybill"))
        found: list[Reading] = []
        for event in _scans(shipment, where, rejections):
            raw = Raw(type=event.type, code=event.word, further=(event.code,) if event.code else ())
            at = place(city=event.city)
            found += reading_of(
                Scan(
                    where=event.where,
                    raw=raw,
                    meaning=_meaning(raw),
                    time=CLOCK.read(event.at, received_at=received_at),
                    place=at,
                    description=event.words,
                    signed_by=event.signatory,
                ),
                number,
                rejections,
            )
        expected = text(shipment.get("ExpectedDeliveryDate")) or text(
            shipment.get("PromisedDeliveryDate")
        )
        yield from with_estimate(found, estimate(expected, CLOCK.formats))


def _meaning(raw: Raw) -> Meaning:
    finer = next((known for code in raw.further if (known := NSL_CODES.get((code,)))), None)
    if finer is not None and raw.type in _FORWARD:
        return finer
    word = (raw.code or "").casefold()
    return CODES.get((raw.type or "", word)) or CODES.get(("", word), UNMAPPED)


def _shipments(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is list:
        found = [(f"/{index}", member) for index, member in objects(body, "", rejections)]
    elif type(body) is dict and "ShipmentData" in body:
        found = [
            (f"/ShipmentData/{index}", member)
            for index, member in objects_at(body, "ShipmentData", "", rejections)
        ]
    else:
        found = [("", body)] if type(body) is dict else []
    shipments = [
        (
            f"{where}/Shipment/{index}"
            if type(member["Shipment"]) is list
            else f"{where}/Shipment",
            shipment,
        )
        for where, member in (
            recognised(found, _SHIPMENT, rejections)
            if type(body) is list or len(found) > 1
            else found
        )
        if "Shipment" in member
        for index, shipment in objects_at(member, "Shipment", where, rejections)
    ]
    if (
        found
        and not shipments
        and not (type(body) is dict and {"Error", "error", "rmk"} & body.keys())
    ):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no shipment of Delhivery")
    if not found and type(body) is not dict:
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no shipment of Delhivery")
    yield from shipments


def _scans(shipment: JsonObject, where: str, rejections: Rejections) -> list[DelhiveryScan]:
    """Return the scans, with the status first unless a scan of the list says the same."""
    code = text(shipment.get("NSLCode"))
    scans = []
    for index, member in objects_at(
        shipment, "Scans", where, rejections, required="Status" not in shipment
    ):
        detail = child(member, "ScanDetail") or member
        scans.append(
            DelhiveryScan(
                where=f"{where}/Scans/{index}",
                type=text(detail.get("ScanType")),
                word=text(detail.get("Scan")),
                at=text(detail.get("ScanDateTime")) or text(detail.get("StatusDateTime")),
                city=text(detail.get("ScannedLocation")),
                words=text(detail.get("Instructions")),
                code=text(detail.get("StatusCode")),
                signatory=text(child(shipment, "Status").get("RecievedBy")),
            )
        )
    status = child(shipment, "Status")
    newest = DelhiveryScan(
        where=f"{where}/Status",
        type=text(status.get("StatusType")),
        word=text(status.get("Status")),
        at=text(status.get("StatusDateTime")),
        city=text(status.get("StatusLocation")),
        words=text(status.get("Instructions")),
        code=text(status.get("StatusCode")) or code,
        signatory=text(status.get("RecievedBy")) or text(status.get("ReceivedBy")),
    )
    if not status or any((scan.word, scan.at) == (newest.word, newest.at) for scan in scans):
        return scans
    return [newest, *scans]


CARRIER: Final = Carrier(
    carrier_id="delhivery",
    name="Delhivery",
    number_fields=("AWB|Waybill",),
    normalizers={"1": normalize},
    formats=("Scan push", "Tracking answer"),
    reread=_meaning,
    texts=texts_of(CODES),
    authentication=(ShipperChoice(),),
)
