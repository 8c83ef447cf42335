"""Asendia: the Sync tracking API (Europe) and the milestones of Asendia USA.

Sync numbers the events of a shipment (`id` 1, 2, 3), so the ordinal is an id only together with the number. The milestones of Asendia USA
have none; its detail events, in its answers and on its branded pages, repeat them in the words of the last mile and are read only where no
milestones are.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Raw, Reading
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, as_list, child, objects, objects_at, recognised
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of
from events.parsing.text import text, text_unless
from events.parsing.times import Clock

CODES: Final = meanings("asendia_codes.csv")
"""Codes of milestones (`s1`), of Asendia USA's details and of the United States Postal Service's that it passes on."""
_meaning: Final = by_code(CODES)
CLOCK: Final = Clock(
    formats=TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S]]", "%Y-%m-%dT%H:%M[%z]"),
    default_zone="Europe/Paris",
)
PLACEHOLDERS: Final = frozenset({"string"})
_MILESTONES: Final = ("trackingMilestoneEvents", "trackingDetailEvents", "trackingBrandedDetail")
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message", "detail", "responseStatus"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    for where, shipment in _shipments(read_json(body), rejections):
        if "trackingEvents" in shipment:
            yield from _sync(shipment, where, received_at, rejections)
        else:
            yield from _usa(shipment, where, received_at, rejections)


def _shipments(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is list:
        found = [(f"/{index}", member) for index, member in objects(body, "", rejections)]
    elif type(body) is dict and type(body.get("data")) in (list, dict):
        found = [
            (f"/data/{index}", member) for index, member in objects_at(body, "data", "", rejections)
        ]
    elif type(body) is dict:
        found = [("", body)]
    else:
        found = []
    known = recognised(found, {"trackingEvents", *_MILESTONES}, rejections)
    if not known and not (type(body) is dict and ("data" in body or _ERROR_FIELDS & body.keys())):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no tracking of Asendia")
    yield from known


def _sync(
    shipment: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Reading]:
    pointer = f"{where}/trackingEvents"
    for index, event in objects_at(shipment, "trackingEvents", where, rejections):
        code = text(event.get("code"))
        at = place(city=event.get("locationName"), country=event.get("locationCountry"))
        raw = Raw(code=code)
        yield from reading_of(
            Scan(
                where=f"{pointer}/{index}",
                raw=raw,
                meaning=_meaning(raw),
                time=CLOCK.read(text(event.get("time")), at, received_at=received_at),
                place=at,
                description=text(event.get("carrierEventDescription"))
                or text(event.get("description")),
                native_id=text(event.get("id")),
                native_id_per_number=True,
            ),
            text(shipment.get("trackingNumber")),
            rejections,
        )


def _usa(
    shipment: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Reading]:
    name = next((name for name in _MILESTONES if as_list(shipment.get(name))), _MILESTONES[0])
    pointer = f"{where}/{name}"
    for index, event in objects_at(shipment, name, where, rejections):
        code = text(event.get("eventCode"))
        at = _place(event)
        raw = Raw(code=code)
        yield from reading_of(
            Scan(
                where=f"{pointer}/{index}",
                raw=raw,
                meaning=_meaning(raw),
                time=CLOCK.read(text(event.get("eventOn")), at, received_at=received_at),
                place=at,
                description=text(event.get("eventDescription")),
            ),
            text(shipment.get("trackingNumberVendor"))
            or text(child(shipment, "trackingBrandedSummary").get("trackingNumberVendor")),
            rejections,
        )


def _place(event: JsonObject) -> EventPlace:
    """Return the place: a milestone prints a line, a detail its parts or placeholders."""
    parts = child(event, "eventLocationDetails")
    city, region, postal_code, country = (
        text_unless(parts.get(name), PLACEHOLDERS)
        for name in ("city", "province", "postalCode", "countryIso2")
    )
    return place(
        city=text(event.get("eventLocation")) or city,
        region=region,
        postal_code=postal_code,
        country=country,
    )


CARRIER: Final = Carrier(
    carrier_id="asendia",
    name="Asendia",
    number_fields=("trackingNumber|trackingNumberVendor",),
    normalizers={"1": normalize},
    formats=("Sync tracking JSON", "Asendia USA milestones JSON"),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
