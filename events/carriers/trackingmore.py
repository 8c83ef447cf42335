"""TrackingMore: webhooks and answers of API v4, and the field names of the versions before it.

A substatus decides, the delivery status is coarser. Times are local to the place of the scan and
print no zone. The carriers of origin and of destination have a list each; a scan may be in both.

TrackingMore signs the time of its push and not the body, so its signature proves no content and is
no scheme here.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# Statuses and substatuses: their names never collide.
CODES: Final = kit.meanings("trackingmore_codes.csv")

FORMATS: Final = kit.TimeFormats("%Y-%m-%d[ %H:%M[:%S]]", "%Y-%m-%dT%H:%M:%S[%f][%z]")
# TrackingMore prints midnight where the carrier printed a date alone
CLOCK: Final = kit.Clock(formats=FORMATS, midnight_is_day=True)

_LEGS: Final = ("origin_info", "destination_info")
_KNOWN_LEGS: Final = frozenset(_LEGS)
_UNTOLD: Final = frozenset({None, "pending", "notfound"})
_ERROR_FIELDS: Final = frozenset({"code", "meta", "message", "error", "errors"})
_SHIPMENT: Final = frozenset({"tracking_number", *_LEGS})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, shipment in _shipments(kit.read_json(body), rejections):
        found = kit.readings_of(
            _scans(shipment, where, received_at, rejections),
            kit.text(shipment.get("tracking_number")),
            rejections,
        )
        found = kit.with_signer(
            kit.carried_by(found, _courier(shipment)), kit.text(shipment.get("signed_by"))
        )
        yield from kit.with_estimate(
            found, kit.estimate(kit.text(shipment.get("scheduled_delivery_date")), FORMATS)
        )


def _shipments(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is not dict or not (_ERROR_FIELDS | _SHIPMENT | {"data"}) & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of TrackingMore"
        )
    if body.keys() & _SHIPMENT:
        yield "", body
        return
    data = body.get("data")
    held, pointer = (
        (data["items"], "/data/items")
        if type(data) is dict and "items" in data
        else (data, "/data")
    )
    for index, shipment in kit.objects(held, pointer, rejections):
        yield f"{pointer}/{index}", shipment


def _scans(
    shipment: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    origin = kit.place(country=shipment.get("origin_country"))
    journey = kit.Journey(
        # the number of a postal item ends with the country that it comes from
        origin if origin.country else kit.origin_of_item(kit.text(shipment.get("tracking_number"))),
        kit.place(country=shipment.get("destination_country")),
        kit.home_of(_courier(shipment)),
    )
    if not shipment.keys() & _KNOWN_LEGS and not kit.holds_dated(shipment):
        status = kit.text(shipment.get("delivery_status")) or kit.text(shipment.get("status"))
        if status in _UNTOLD:
            # the answer to the registration of a number
            rejections.note_nothing()
        else:
            rejections.add(f"{where}/{_LEGS[0]}", kit.NO_CONTAINER)
    for leg in _LEGS:
        pointer = f"{where}/{leg}/trackinfo"
        at_leg = kit.object_at(shipment, leg, where, rejections, required=False, but=_KNOWN_LEGS)
        for index, step in kit.objects_at(at_leg, "trackinfo", f"{where}/{leg}", rejections):
            status = kit.text(step.get("checkpoint_delivery_status")) or kit.text(
                step.get("checkpoint_status")
            )
            raw = kit.Raw(
                type=status,
                code=kit.text(step.get("checkpoint_delivery_substatus"))
                or kit.text(step.get("substatus")),
            )
            at, meaning = (
                _place(step, (journey.origin.country, journey.destination.country)),
                _meaning(raw),
            )
            printed = kit.text(step.get("checkpoint_date")) or kit.text(step.get("Date"))
            yield kit.Scan(
                where=f"{pointer}/{index}",
                raw=raw,
                meaning=meaning,
                time=CLOCK.read(
                    printed, at, received_at=received_at, journey=journey.at(meaning.status)
                ),
                place=at,
                description=kit.text(step.get("tracking_detail"))
                or kit.text(step.get("StatusDescription")),
            )


def _courier(shipment: kit.JsonObject) -> str | None:
    return kit.text(shipment.get("courier_code")) or kit.text(shipment.get("carrier_code"))


def _place(step: kit.JsonObject, of_shipment: tuple[str | None, ...]) -> kit.EventPlace:
    """Read the place from fields of their own, or from a line (`PASADENA,MD,US`)."""
    return kit.reported_place(
        kit.text(step.get("location")) or kit.text(step.get("Details")),
        city=step.get("city"),
        region=step.get("state"),
        postal_code=step.get("zip"),
        country=step.get("country_iso2"),
        of_shipment=of_shipment,
    )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    return kit.finest(
        (raw.code, CODES.get(((raw.code or "").lower(),))),
        (raw.type, CODES.get(((raw.type or "").lower(),))),
    )


CARRIER: Final = kit.Carrier(
    carrier_id="trackingmore",
    name="TrackingMore",
    number_fields=("tracking_number",),
    normalizers={"1": normalize},
    formats=("Webhook v4 JSON", "Tracking JSON"),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
