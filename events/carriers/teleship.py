"""Teleship: shipment webhooks (`data`) and tracking answers; every push repeats the history.

Codes are printed in capitals by webhooks and in lower case by the API, and mean the same. Times are UTC. The numbers of the first and
the last mile are left out: Teleship's own is the number.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, Hmac, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import ISO
from events.parsing.json import read_json
from events.parsing.lines import position_in_line
from events.parsing.lists import JsonObject, members, objects_at
from events.parsing.meanings import UNMAPPED, Meaning, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("teleship_codes.csv")
"""The code in lower case."""

CLOCK: Final = Clock(formats=ISO)

_ERROR_FIELDS: Final = frozenset(
    {"error", "errors", "message", "messages", "statusCode", "eventName", "objectType"}
)
_UNKNOWN: Final = "JSON, but no shipment of Teleship"


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Return the events of one webhook or answer; other webhooks say nothing about scans."""
    for where, shipment in _shipments(read_json(body), "", rejections):
        found = readings_of(
            _scans(shipment, where, received_at, rejections),
            text(shipment.get("trackingNumber")),
            rejections,
        )
        yield from with_estimate(found, estimate(text(shipment.get("estimatedDelivery")), ISO))


def _shipments(
    body: object, where: str, rejections: Rejections
) -> Iterator[tuple[str, JsonObject]]:
    for at, member in members(body, where, rejections, unknown=_UNKNOWN):
        if "events" in member or "trackingNumber" in member:
            yield at, member
        elif type(member.get("data")) in (dict, list):
            if "eventName" in member and not str(member["eventName"]).startswith("shipment."):
                rejections.note_nothing()
            else:
                yield from _shipments(member["data"], f"{at}/data", rejections)
        elif not _ERROR_FIELDS & member.keys():
            raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, _UNKNOWN)


def _meaning(raw: Raw) -> Meaning:
    return CODES.get(((raw.code or "").lower(),), UNMAPPED)


def _scans(
    shipment: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, event in objects_at(shipment, "events", where, rejections):
        where_at = position_in_line(text(event.get("location")))
        raw = Raw(code=text(event.get("code")) or text(event.get("status")))
        yield Scan(
            where=f"{where}/events/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(text(event.get("timestamp")), where_at, received_at=received_at),
            place=where_at,
            description=text(event.get("description")),
        )


CARRIER: Final = Carrier(
    carrier_id="teleship",
    name="Teleship",
    number_fields=("data.trackingNumber", ".trackingNumber"),
    normalizers={"1": normalize},
    formats=("Shipment webhook JSON", "Tracking API JSON"),
    reread=_meaning,
    authentication=(Hmac(header="x-teleship-signature"), ShipperChoice(default=())),
)
