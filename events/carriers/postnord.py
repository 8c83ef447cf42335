"""PostNord: answers of its Track & Trace API, and its portal's shipment without an envelope.

The items of a shipment are tracked separately.

The status of an event decides; an undocumented status leaves it to the text. PostNord does not
publish the meaning of its event codes. Times are local to the place of the event. The receiver of
an item is printed next to its events.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("postnord_codes.csv")

TEXTS: Final = kit.meanings("postnord_texts.csv")
_by_text = kit.by_sentence({words: meaning for (words,), meaning in TEXTS.items()})

CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="Europe/Stockholm")

_ROOT: Final = "TrackingInformationResponse"
_SHIPMENT: Final = frozenset({"shipmentId", "items"})
_ERROR_FIELDS: Final = frozenset({"compositeFault", "message", "error"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, shipment in _shipments(kit.read_json(body), rejections):
        printed = kit.child(shipment, "service")
        service = kit.text(printed.get("name")) or kit.text(printed.get("code"))
        for index, item in kit.objects_at(shipment, "items", where, rejections):
            # the items of a shipment are delivered separately
            number = kit.text(item.get("itemId")) or kit.text(shipment.get("shipmentId"))
            found = kit.readings_of(
                _scans(item, f"{where}/items/{index}", received_at, rejections),
                number,
                rejections,
                service=service,
            )
            acceptor = kit.signer(kit.child(item, "acceptor").get("name")) or kit.signer(
                kit.child(shipment, "acceptor").get("name")
            )
            yield from kit.with_estimate(
                kit.with_signer(found, acceptor), _estimate(item) or _estimate(shipment)
            )


def _shipments(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is dict and type(body.get(_ROOT)) is dict:
        pointer = f"/{_ROOT}/shipments"
        for index, shipment in kit.objects_at(body[_ROOT], "shipments", f"/{_ROOT}", rejections):
            yield f"{pointer}/{index}", shipment
    elif type(body) is dict and body.keys() >= _SHIPMENT:
        yield "", body
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of PostNord"
        )


def _scans(
    item: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(item, "events", where, rejections):
        raw = kit.Raw(
            type=kit.text(event.get("status")) or kit.text(event.get("eventStatus")),
            code=kit.text(event.get("eventCode")),
        )
        words = kit.text(event.get("eventDescription"))
        location = kit.child(event, "location")
        at = kit.place(
            city=location.get("city"),
            postal_code=location.get("postcode"),
            country=location.get("countryCode"),
            facility=location.get("displayName") or location.get("name"),
        )
        yield kit.Scan(
            where=f"{where}/events/{index}",
            raw=raw,
            # not by the event's code: PostNord publishes no meaning of those
            meaning=CODES.get((raw.type or "",)) or _by_text(words or "") or kit.UNMAPPED,
            time=CLOCK.read(kit.text(event.get("eventTime")), at, received_at=received_at),
            place=at,
            description=words,
        )


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read a documented status; for any other the text decides."""
    return CODES.get((raw.type or "",))


def _estimate(parcel: kit.JsonObject) -> str | None:
    printed = kit.text(parcel.get("publicTimeOfArrival")) or kit.text(
        parcel.get("estimatedTimeOfArrival")
    )
    return kit.estimate(printed, kit.ISO) if printed else None


CARRIER: Final = kit.Carrier(
    carrier_id="postnord",
    name="PostNord",
    number_fields=("itemId",),
    normalizers={"1": normalize},
    formats=("Track & Trace JSON", "Portal JSON"),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
