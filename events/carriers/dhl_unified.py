"""DHL Shipment Tracking Unified: the push and the answer of the API have the same shape, for all of DHL's services.

A scan carries a category (`statusCode`) that DHL documents and, in `status`, a code or a text of the service. A documented code of the
service is read as such; everything else is read by its category, never by its text (DHL's own sample says `pre-transit` and `DELIVERED`
of one scan). The number is the shipment's `id`; a piece named by a scan tells it apart and is no shipment of its own.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from events.carriers.carrier import Carrier, SharedHeader, UrlToken
from events.errors import Cause, UnreadableMessageError
from events.event import Normalized, Place, Raw, Reading, Rejection
from events.reading.enrichment import estimate, with_estimate, with_signer
from events.reading.formats import ISO
from events.reading.json import read_json
from events.reading.lists import JsonObject, as_list, child, objects
from events.reading.meanings import UNMAPPED, Meaning, meanings
from events.reading.places import place
from events.reading.text import signer, text
from events.reading.times import Clock
from events.vocabulary import Kind, Status

CODES: Final = meanings("dhl_unified_codes.csv")
"""(service, code): the codes of `status` that a service documents and whose meaning is clear."""

CATEGORIES: Final = {
    "pre-transit": Meaning(Kind.SCAN, Status.INFO_RECEIVED),
    "transit": Meaning(Kind.SCAN, Status.IN_TRANSIT),
    "delivered": Meaning(Kind.SCAN, Status.DELIVERED),
    "failure": Meaning(Kind.SCAN, Status.EXCEPTION),
    "unknown": Meaning(Kind.INFO),
}
CLOCK: Final = Clock(formats=ISO)
ROLLUP_CLOCK: Final = Clock(formats=ISO, trust_offset=False)
"""The rollup prints the local time of its scan with a `Z`."""

_ERROR_FIELDS: Final = frozenset({"title", "detail", "message", "error", "errors"})
_SCAN_FIELDS: Final = frozenset({"events", "status"})


class Said(NamedTuple):
    """How a scan was read: its code as printed and what it means."""

    raw: Raw
    meaning: Meaning
    by_category: bool


def normalize(body: bytes, received_at: datetime) -> Normalized:
    """Events of one push or answer."""
    rejections: list[Rejection] = []
    readings: list[Reading] = []
    for where, shipment in _shipments(read_json(body), rejections):
        readings += _shipment(shipment, where, received_at, rejections)
    return Normalized(readings=tuple(readings), rejections=tuple(rejections))


def _shipments(body: object, rejections: list[Rejection]) -> Iterator[tuple[str, JsonObject]]:
    """The shipments with their pointers: of a list, of an answer, or the one that a push holds by itself."""
    if body in ({}, []):
        return
    if type(body) is list:
        found, base = objects(body, "", rejections), ""
    elif type(body) is dict and "shipments" in body:
        found, base = objects(body["shipments"], "/shipments", rejections), "/shipments"
    elif type(body) is dict and "id" in body and _SCAN_FIELDS & body.keys():
        yield "", body
        return
    elif type(body) is dict and _ERROR_FIELDS & body.keys():
        return
    else:
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "no `shipments` and not a shipment of DHL Unified Tracking")
    for index, shipment in found:
        yield f"{base}/{index}", shipment


def _shipment(shipment: JsonObject, where: str, received_at: datetime, rejections: list[Rejection]) -> list[Reading]:
    events = shipment.get("events")
    scans = [(f"{where}/events/{index}", scan) for index, scan in objects(events, f"{where}/events", rejections)]
    if not as_list(events) and (rollup := child(shipment, "status")):
        scans = [(f"{where}/status", rollup)]
    number = text(shipment.get("id"))
    service = (text(shipment.get("service")) or "").casefold()
    readings = []
    for pointer, scan in scans:
        said = _said(scan, service)
        if said is None:
            rejections.append(Rejection(pointer=pointer, why="neither a code nor a text"))
            continue
        at = _place(scan)
        printed = text(scan.get("timestamp"))
        clock = ROLLUP_CLOCK if pointer.endswith("/status") and printed and printed.endswith("Z") else CLOCK
        time = clock.read(printed, at, received_at=received_at)
        if time is None:
            rejections.append(Rejection(pointer=pointer, why="a time in no known format"))
            continue
        readings.append(
            Reading(
                tracking_number=number,
                kind=said.meaning.kind,
                status=said.meaning.status,
                reason=said.meaning.reason,
                by_category=said.by_category,
                raw=said.raw,
                time=time,
                place=at,
                piece=_piece(scan),
                description=text(scan.get("description")),
            )
        )
    readings = with_signer(readings, _signer(shipment))
    return with_estimate(readings, estimate(text(shipment.get("estimatedTimeOfDelivery")), ISO))


def _said(scan: JsonObject, service: str) -> Said | None:
    category, code, detail = text(scan.get("statusCode")), text(scan.get("status")), text(scan.get("statusDetailed"))
    if category is None and code is None and detail is None:
        return None if text(scan.get("description")) is None else Said(Raw(), UNMAPPED, by_category=False)
    raw = Raw(type=category, code=code or detail, further=(detail,) if code and detail else ())
    documented = CODES.get((service, detail or "")) or CODES.get((service, code or ""))
    if documented is not None:
        return Said(raw, documented, by_category=False)
    by_category = CATEGORIES.get((category or "").casefold().replace("_", "-").replace(" ", "-"))
    if by_category is None:
        return Said(raw, UNMAPPED, by_category=False)
    if raw.code is None:
        return Said(Raw(code=category), by_category, by_category=False)
    return Said(raw, by_category, by_category=True)


def _place(scan: JsonObject) -> Place:
    address = child(scan, "location", "address")
    return place(
        city=address.get("addressLocality"),
        region=address.get("addressRegion"),
        postal_code=address.get("postalCode"),
        country=address.get("countryCode"),
    )


def _piece(scan: JsonObject) -> str | None:
    """The piece that a scan names; a scan of several is one of the shipment."""
    pieces = as_list(scan.get("pieceIds"))
    return text(pieces[0]) if len(pieces) == 1 else None


def _signer(shipment: JsonObject) -> str | None:
    signed = child(shipment, "details", "proofOfDelivery", "signed")
    names = (text(signed.get("givenName")), text(signed.get("familyName")))
    return signer(signed.get("name")) or signer(" ".join(name for name in names if name))


CARRIER: Final = Carrier(
    carrier_id="dhl_unified",
    name="DHL Shipment Tracking Unified",
    normalizers={"1": normalize},
    stable="1",
    formats=("Shipment Tracking Unified push JSON", "Shipment Tracking Unified API JSON"),
    authentication=(SharedHeader(header="DHL-Webhook-Token"), UrlToken()),
)
