"""Delhivery: scan pushes and tracking answers.

`Status` is the newest scan; `Scans` repeat it, or hold only the older scans. The code is the status
type (UD forward, RT return, PU and PP reverse pickup, DL, CN) with the status word: a word has
another meaning on the way back. On the way forward an NSL code of the table refines the word
(`Pending` with EOD-74 is a refusal at the door); `lists/delhivery_nsl_codes.csv` gives the reason
for the others. Times are Indian.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from events.carriers import kit

# (type, word in lower case); the word alone where it means the same on every way.
CODES: Final = kit.meanings("delhivery_codes.csv")

# The NSL codes that refine their status word, `Pending` or `Not Picked` for all of them.
NSL_CODES: Final = kit.meanings("delhivery_nsl_codes.csv")

_SHIPMENT: Final = frozenset({"Shipment"})
# a scan without a type is read as one on the way forward
_FORWARD: Final = frozenset({None, "UD"})

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S[%f]]]", "%-d/%-m/%Y[ %H:%M[:%S]]"
    ),
    default_zone="Asia/Kolkata",
    country="IN",
)


class DelhiveryScan(NamedTuple):
    where: str
    type: str | None
    word: str | None
    at: str | None
    city: str | None
    words: str | None
    code: str | None
    signatory: str | None


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, shipment in _shipments(kit.read_json(body), rejections):
        number = kit.text(shipment.get("AWB")) or kit.text(shipment.get("Waybill"))
        found: list[kit.Reading] = []
        for event in _scans(shipment, where, rejections):
            raw = kit.Raw(
                type=event.type, code=event.word, further=(event.code,) if event.code else ()
            )
            at = kit.place(city=event.city)
            found += kit.reading_of(
                kit.Scan(
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
        expected = kit.text(shipment.get("ExpectedDeliveryDate")) or kit.text(
            shipment.get("PromisedDeliveryDate")
        )
        yield from kit.with_estimate(found, kit.estimate(expected, CLOCK.formats))


def _meaning(raw: kit.Raw) -> kit.Meaning:
    finer = next((known for code in raw.further if (known := NSL_CODES.get((code,)))), None)
    # on the way back the same NSL codes are about the return, whose word is the finer statement
    if finer is not None and raw.type in _FORWARD:
        return finer
    word = (raw.code or "").casefold()
    return CODES.get((raw.type or "", word)) or CODES.get(("", word), kit.UNMAPPED)


def _shipments(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is list:
        found = [(f"/{index}", member) for index, member in kit.objects(body, "", rejections)]
    elif type(body) is dict and "ShipmentData" in body:
        found = [
            (f"/ShipmentData/{index}", member)
            for index, member in kit.objects_at(body, "ShipmentData", "", rejections)
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
            kit.recognised(found, _SHIPMENT, rejections)
            if type(body) is list or len(found) > 1
            else found
        )
        if "Shipment" in member
        for index, shipment in kit.objects_at(member, "Shipment", where, rejections)
    ]
    if (
        found
        and not shipments
        and not (type(body) is dict and {"Error", "error", "rmk"} & body.keys())
    ):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no shipment of Delhivery"
        )
    if not found and type(body) is not dict:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no shipment of Delhivery"
        )
    yield from shipments


def _scans(shipment: kit.JsonObject, where: str, rejections: kit.Rejections) -> list[DelhiveryScan]:
    """Return the scans, the status first unless the list repeats it."""
    # a push prints the code of its status beside it, an answer within it
    code = kit.text(shipment.get("NSLCode"))
    scans = []
    for index, member in kit.objects_at(
        shipment, "Scans", where, rejections, required="Status" not in shipment
    ):
        detail = kit.child(member, "ScanDetail") or member
        scans.append(
            DelhiveryScan(
                where=f"{where}/Scans/{index}",
                type=kit.text(detail.get("ScanType")),
                word=kit.text(detail.get("Scan")),
                at=kit.text(detail.get("ScanDateTime")) or kit.text(detail.get("StatusDateTime")),
                city=kit.text(detail.get("ScannedLocation")),
                words=kit.text(detail.get("Instructions")),
                code=kit.text(detail.get("StatusCode")),
                # `Recieved` is Delhivery's spelling
                signatory=kit.text(kit.child(shipment, "Status").get("RecievedBy")),
            )
        )
    status = kit.child(shipment, "Status")
    newest = DelhiveryScan(
        where=f"{where}/Status",
        type=kit.text(status.get("StatusType")),
        word=kit.text(status.get("Status")),
        at=kit.text(status.get("StatusDateTime")),
        city=kit.text(status.get("StatusLocation")),
        words=kit.text(status.get("Instructions")),
        code=kit.text(status.get("StatusCode")) or code,
        signatory=kit.text(status.get("RecievedBy")) or kit.text(status.get("ReceivedBy")),
    )
    # word and time alone: the other fields need not be in both copies
    if not status or any((scan.word, scan.at) == (newest.word, newest.at) for scan in scans):
        return scans
    return [newest, *scans]


CARRIER: Final = kit.Carrier(
    carrier_id="delhivery",
    name="Delhivery",
    number_fields=("AWB|Waybill",),
    normalizers={"1": normalize},
    formats=("Scan push", "Tracking answer"),
    reread=_meaning,
    texts=kit.texts_of(CODES),
    authentication=(kit.ShipperChoice(),),
)
