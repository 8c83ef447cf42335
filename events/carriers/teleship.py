"""Teleship: shipment webhooks (`data`) and tracking answers; every push repeats the history.

Codes are printed in capitals by webhooks and in lower case by the API, and mean the same. Times are
UTC. The numbers of the first and the last mile are left out: Teleship's own is the number.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# The code in lower case.
CODES: Final = kit.meanings("teleship_codes.csv")

CLOCK: Final = kit.Clock(formats=kit.ISO)

_ERROR_FIELDS: Final = frozenset(
    {"error", "errors", "message", "messages", "statusCode", "eventName", "objectType"}
)
_UNKNOWN: Final = "JSON, but no shipment of Teleship"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Return the events of a webhook or answer; other webhooks hold no scans."""
    for where, shipment in _shipments(kit.read_json(body), "", rejections):
        found = kit.readings_of(
            _scans(shipment, where, received_at, rejections),
            kit.text(shipment.get("trackingNumber")),
            rejections,
        )
        yield from kit.with_estimate(
            found, kit.estimate(kit.text(shipment.get("estimatedDelivery")), kit.ISO)
        )


def _shipments(
    body: object, where: str, rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject]]:
    for at, member in kit.members(body, where, rejections, unknown=_UNKNOWN):
        if "events" in member or "trackingNumber" in member:
            yield at, member
        elif type(member.get("data")) in (dict, list):
            if "eventName" in member and not str(member["eventName"]).startswith("shipment."):
                rejections.note_nothing()
            else:
                yield from _shipments(member["data"], f"{at}/data", rejections)
        elif not _ERROR_FIELDS & member.keys():
            raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, _UNKNOWN)


def _meaning(raw: kit.Raw) -> kit.Meaning:
    return CODES.get(((raw.code or "").lower(),), kit.UNMAPPED)


def _scans(
    shipment: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(shipment, "events", where, rejections):
        where_at = kit.position_in_line(kit.text(event.get("location")))
        raw = kit.Raw(code=kit.text(event.get("code")) or kit.text(event.get("status")))
        yield kit.Scan(
            where=f"{where}/events/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(kit.text(event.get("timestamp")), where_at, received_at=received_at),
            place=where_at,
            description=kit.text(event.get("description")),
        )


CARRIER: Final = kit.Carrier(
    carrier_id="teleship",
    name="Teleship",
    number_fields=("data.trackingNumber", ".trackingNumber"),
    normalizers={"1": normalize},
    formats=("Shipment webhook JSON", "Tracking API JSON"),
    reread=_meaning,
    authentication=(kit.Hmac(header="x-teleship-signature"), kit.ShipperChoice(default=())),
)
