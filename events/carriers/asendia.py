"""Asendia: the Sync tracking API (Europe) and the milestones of Asendia USA.

Sync numbers the events of a shipment (`id` 1, 2, 3), so the ordinal is an id only together with the
number. The milestones of Asendia USA have none; its detail events, in its answers and on its
branded pages, repeat them in the words of the last mile and are read only where no milestones are.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# Codes of milestones (`s1`), of Asendia USA's details and of the United States Postal Service's
# that it passes on.
CODES: Final = kit.meanings("asendia_codes.csv")
_meaning: Final = kit.by_code(CODES)
CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S]]", "%Y-%m-%dT%H:%M[%z]"
    ),
    default_zone="Europe/Paris",
)
PLACEHOLDERS: Final = frozenset({"string"})
_MILESTONES: Final = ("trackingMilestoneEvents", "trackingDetailEvents", "trackingBrandedDetail")
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message", "detail", "responseStatus"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, shipment in _shipments(kit.read_json(body), rejections):
        if "trackingEvents" in shipment:
            yield from _sync(shipment, where, received_at, rejections)
        else:
            yield from _usa(shipment, where, received_at, rejections)


def _shipments(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is list:
        found = [(f"/{index}", member) for index, member in kit.objects(body, "", rejections)]
    elif type(body) is dict and type(body.get("data")) in (list, dict):
        found = [
            (f"/data/{index}", member)
            for index, member in kit.objects_at(body, "data", "", rejections)
        ]
    elif type(body) is dict:
        found = [("", body)]
    else:
        found = []
    known = kit.recognised(found, {"trackingEvents", *_MILESTONES}, rejections)
    if not known and not (type(body) is dict and ("data" in body or _ERROR_FIELDS & body.keys())):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of Asendia"
        )
    yield from known


def _sync(
    shipment: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    pointer = f"{where}/trackingEvents"
    for index, event in kit.objects_at(shipment, "trackingEvents", where, rejections):
        code = kit.text(event.get("code"))
        at = kit.place(city=event.get("locationName"), country=event.get("locationCountry"))
        raw = kit.Raw(code=code)
        yield from kit.reading_of(
            kit.Scan(
                where=f"{pointer}/{index}",
                raw=raw,
                meaning=_meaning(raw),
                time=CLOCK.read(kit.text(event.get("time")), at, received_at=received_at),
                place=at,
                description=kit.text(event.get("carrierEventDescription"))
                or kit.text(event.get("description")),
                native_id=kit.text(event.get("id")),
                # Sync numbers the events of each shipment from 1
                native_id_per_number=True,
            ),
            kit.text(shipment.get("trackingNumber")),
            rejections,
        )


def _usa(
    shipment: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    # one list alone: details repeat the milestones in the words of the last mile
    name = next((name for name in _MILESTONES if kit.as_list(shipment.get(name))), _MILESTONES[0])
    pointer = f"{where}/{name}"
    for index, event in kit.objects_at(shipment, name, where, rejections):
        code = kit.text(event.get("eventCode"))
        at = _place(event)
        raw = kit.Raw(code=code)
        yield from kit.reading_of(
            kit.Scan(
                where=f"{pointer}/{index}",
                raw=raw,
                meaning=_meaning(raw),
                time=CLOCK.read(kit.text(event.get("eventOn")), at, received_at=received_at),
                place=at,
                description=kit.text(event.get("eventDescription")),
            ),
            kit.text(shipment.get("trackingNumberVendor"))
            or kit.text(kit.child(shipment, "trackingBrandedSummary").get("trackingNumberVendor")),
            rejections,
        )


def _place(event: kit.JsonObject) -> kit.EventPlace:
    """Return the place: a milestone prints a line, a detail its parts or placeholders."""
    parts = kit.child(event, "eventLocationDetails")
    city, region, postal_code, country = (
        kit.text_unless(parts.get(name), PLACEHOLDERS)
        for name in ("city", "province", "postalCode", "countryIso2")
    )
    return kit.place(
        city=kit.text(event.get("eventLocation")) or city,
        region=region,
        postal_code=postal_code,
        country=country,
    )


CARRIER: Final = kit.Carrier(
    carrier_id="asendia",
    name="Asendia",
    number_fields=("trackingNumber|trackingNumberVendor",),
    normalizers={"1": normalize},
    formats=("Sync tracking JSON", "Asendia USA milestones JSON"),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
