"""PostNord: answers of its Track & Trace API. The items of a shipment are tracked each by itself.

The status of an event decides; one that PostNord does not document leaves it to the text. PostNord does not publish what its event codes
mean. Times are local to the place of the event. Whom an item was handed to stands next to its events.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import estimate, with_estimate, with_signer
from events.parsing.formats import ISO
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child, objects_at
from events.parsing.meanings import UNMAPPED, Meaning, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.sentences import by_sentence
from events.parsing.text import signer, text
from events.parsing.times import Clock

CODES: Final = meanings("postnord_codes.csv")
"""Statuses of an event."""

TEXTS: Final = meanings("postnord_texts.csv")
_by_text = by_sentence({words: meaning for (words,), meaning in TEXTS.items()})

CLOCK: Final = Clock(formats=ISO, default_zone="Europe/Stockholm")

_ROOT: Final = "TrackingInformationResponse"
_ERROR_FIELDS: Final = frozenset({"compositeFault", "message", "error"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    for where, shipment in _shipments(read_json(body), rejections):
        printed = child(shipment, "service")
        service = text(printed.get("name")) or text(printed.get("code"))
        for index, item in objects_at(shipment, "items", where, rejections):
            number = text(item.get("itemId")) or text(shipment.get("shipmentId"))
            found = readings_of(
                _scans(item, f"{where}/items/{index}", received_at, rejections),
                number,
                rejections,
                service=service,
            )
            acceptor = signer(child(item, "acceptor").get("name")) or signer(
                child(shipment, "acceptor").get("name")
            )
            yield from with_estimate(
                with_signer(found, acceptor), _estimate(item) or _estimate(shipment)
            )


def _shipments(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is dict and type(body.get(_ROOT)) is dict:
        pointer = f"/{_ROOT}/shipments"
        for index, shipment in objects_at(body[_ROOT], "shipments", f"/{_ROOT}", rejections):
            yield f"{pointer}/{index}", shipment
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no tracking of PostNord")


def _scans(
    item: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, event in objects_at(item, "events", where, rejections):
        raw = Raw(
            type=text(event.get("status")) or text(event.get("eventStatus")),
            code=text(event.get("eventCode")),
        )
        words = text(event.get("eventDescription"))
        location = child(event, "location")
        at = place(
            city=location.get("city"),
            postal_code=location.get("postcode"),
            country=location.get("countryCode"),
            facility=location.get("displayName") or location.get("name"),
        )
        yield Scan(
            where=f"{where}/events/{index}",
            raw=raw,
            meaning=CODES.get((raw.type or "",)) or _by_text(words or "") or UNMAPPED,
            time=CLOCK.read(text(event.get("eventTime")), at, received_at=received_at),
            place=at,
            description=words,
        )


def _reread(raw: Raw) -> Meaning | None:
    """Read a documented status; for any other the text decides."""
    return CODES.get((raw.type or "",))


def _estimate(parcel: JsonObject) -> str | None:
    printed = text(parcel.get("publicTimeOfArrival")) or text(parcel.get("estimatedTimeOfArrival"))
    return estimate(printed, ISO) if printed else None


CARRIER: Final = Carrier(
    carrier_id="postnord",
    name="PostNord",
    number_fields=("itemId",),
    normalizers={"1": normalize},
    formats=("Track & Trace JSON",),
    reread=_reread,
    authentication=(ShipperChoice(),),
)
