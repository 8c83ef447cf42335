"""ShipLogic, the platform of The Courier Guy and others in South Africa: webhooks and
answers of its tracking.

A shipment's own status may be ahead of its events and prints no time, so that it counts only
where there are no events.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("shiplogic_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="Africa/Johannesburg", country="ZA")

_EVENTS: Final = "tracking_events"
_NUMBERS: Final = ("custom_tracking_reference", "short_tracking_reference")
_ERROR_FIELDS: Final = frozenset({"error", "message"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, shipment in _shipments(kit.read_json(body), rejections):
        number = kit.text(shipment.get(_NUMBERS[0])) or kit.text(shipment.get(_NUMBERS[1]))
        found = kit.readings_of(
            _scans(shipment, where, received_at, rejections),
            number,
            rejections,
            service=kit.text(shipment.get("service_level_name")),
        )
        expected = kit.text(shipment.get("shipment_estimated_delivery_to"))
        yield from kit.with_estimate(found, kit.estimate(expected, kit.ISO))


def _shipments(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is dict and _EVENTS in body:
        yield "", body
    elif type(body) is dict and "shipments" in body:
        found = kit.objects_at(body, "shipments", "", rejections)
        yield from kit.recognised(
            ((f"/shipments/{index}", shipment) for index, shipment in found), {_EVENTS}, rejections
        )
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of ShipLogic"
        )


def _scans(
    shipment: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    events = kit.objects_at(shipment, _EVENTS, where, rejections)
    found = [(f"{where}/{_EVENTS}/{index}", event) for index, event in events]
    if not found and (status := kit.text(shipment.get("status"))):
        found = [(f"{where}/status", {"status": status})]
    for pointer, event in found:
        raw = kit.Raw(code=kit.text(event.get("status")))
        yield kit.Scan(
            where=pointer,
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(kit.text(event.get("date")), received_at=received_at),
            place=kit.place(facility=event.get("location")),
            description=kit.text(event.get("message")),
            native_id=kit.text(event.get("id")),
        )


CARRIER: Final = kit.Carrier(
    carrier_id="shiplogic",
    name="ShipLogic",
    number_fields=("custom_tracking_reference|short_tracking_reference",),
    normalizers={"1": normalize},
    formats=("Tracking webhook JSON", "Tracking JSON"),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
