"""Ship24: webhooks and API answers, a list of trackings with their events; a resend repeats all of
them.

An event has an id of its own and, after a change of carrier, another number than its tracker. Many
events have no code; then its milestone is the category (`by_category`). `occurrenceDatetime` is
local to the event, with its offset in a field of its own where Ship24 knows it; the `Z` of
`datetime` is not true then.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from events.carriers import kit

# (level, code): `code`, or `milestone` for an event without a known code. An empty milestone has no
# meaning.
CODES: Final = kit.meanings("ship24_codes.csv")

FORMATS: Final = kit.TimeFormats(
    "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d[ %H:%M:%S]"
)
CLOCK: Final = kit.Clock(formats=FORMATS)
CLOCK_WITH_FALSE_Z: Final = kit.Clock(formats=FORMATS, trust_offset=False)

_TRACKINGS: Final = "trackings"
# the picture of a proof of delivery, without a scan
_OTHER_TOPIC: Final = "tracking/pod"
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Yield the events of a webhook or answer; other topics hold no scans."""
    for where, tracking in _trackings(kit.read_json(body), "", rejections):
        delivery = kit.child(tracking, "shipment", "delivery")
        found = kit.with_signer(
            _readings(tracking, where, received_at, rejections),
            kit.signer(delivery.get("signedBy")),
        )
        yield from kit.with_estimate(
            found, kit.estimate(kit.text(delivery.get("estimatedDeliveryDate")), FORMATS)
        )


def _trackings(
    body: object, where: str, rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is dict and _TRACKINGS in body:
        for index, tracking in kit.objects_at(body, _TRACKINGS, where, rejections):
            if kit.text(kit.child(tracking, "metadata").get("topic")) == _OTHER_TOPIC:
                rejections.note_nothing()
            else:
                yield f"{where}/{_TRACKINGS}/{index}", tracking
    elif type(body) is dict and "tracker" in body:
        yield where, body
    elif type(body) is dict and kit.child(body, "data"):
        yield from _trackings(kit.child(body, "data"), f"{where}/data", rejections)
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no trackings of Ship24"
        )


def _readings(
    tracking: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> list[kit.Reading]:
    of_tracker = kit.text(kit.child(tracking, "tracker").get("trackingNumber"))
    shipment = kit.child(tracking, "shipment")
    service = kit.text(kit.child(shipment, "delivery").get("service"))
    journey = kit.Journey(
        kit.place(country=shipment.get("originCountryCode")),
        kit.place(country=shipment.get("destinationCountryCode")),
    )
    found = []
    for index, event in kit.objects_at(tracking, "events", where, rejections):
        number = (
            # after a change of carrier an event has another number than its tracker
            kit.text(event.get("eventTrackingNumber"))
            or kit.text(event.get("trackingNumber"))
            or of_tracker
        )
        scan = _scan(event, f"{where}/events/{index}", received_at, journey)
        found += kit.carried_by(
            kit.readings_of((scan,), number, rejections, service=service),
            kit.text(event.get("courierCode")),
        )
    return found


def _scan(
    event: kit.JsonObject, where: str, received_at: datetime, journey: kit.Journey
) -> kit.Scan:
    raw = kit.Raw(code=kit.text(event.get("statusCode")))
    # courier codes begin with the country; lines of American couriers name a state and no country
    is_american = (kit.text(event.get("courierCode")) or "").startswith("us")
    of_shipment = ("US",) if is_american else (journey.origin.country, journey.destination.country)
    where_at = kit.reported_place(kit.text(event.get("location")), of_shipment=of_shipment)
    return kit.Scan(
        where=where,
        raw=raw,
        meaning=(
            meant := _reread(raw) or _by_milestone(raw, kit.text(event.get("statusMilestone")))
        ),
        time=_time(
            event,
            where_at,
            received_at,
            # of the event's own courier: the tracker may have several
            journey.at(meant.status)._replace(home=kit.home_of(kit.text(event.get("courierCode")))),
        ),
        place=where_at,
        description=kit.text(event.get("status")),
        native_id=kit.text(event.get("eventId")),
    )


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read a known code.

    An event without a code is read by its milestone, which the raw fields lack.
    """
    return CODES.get(("code", raw.code or ""))


def _by_milestone(raw: kit.Raw, milestone: str | None) -> kit.Meaning:
    found = CODES.get(("milestone", milestone or ""), kit.UNMAPPED)
    if found.status is None:
        # an unknown code is a dead letter; without a code there is nothing to be learned
        return kit.UNMAPPED if raw.code else found
    return found.of_category()


def _time(
    event: kit.JsonObject, where: kit.EventPlace, received_at: datetime, journey: kit.Journey
) -> kit.PrintedTime | None:
    offset = kit.text(event.get("utcOffset"))
    printed = kit.text(event.get("occurrenceDatetime"))
    if printed is not None:
        time = CLOCK.read_with_offset(
            printed, offset, where, received_at=received_at, journey=journey
        )
    else:
        # without an offset Ship24 does not know the zone, and prints the wall clock with a `Z`
        clock = CLOCK_WITH_FALSE_Z if offset is None else CLOCK
        time = clock.read(
            kit.text(event.get("datetime")), where, received_at=received_at, journey=journey
        )
    return (
        replace(time, precision=kit.TimePrecision.DAY)
        # midnight stands in for a time that the courier did not print
        if time is not None and event.get("hasNoTime") is True
        else time
    )


CARRIER: Final = kit.Carrier(
    carrier_id="ship24",
    name="Ship24",
    number_fields=("trackingNumber", "eventTrackingNumber", "trackingNumbers.tn"),
    normalizers={"1": normalize},
    formats=("Webhook JSON", "Tracking API JSON"),
    reread=_reread,
    authentication=(
        kit.SharedHeader(header="Authorization", prefix="Bearer "),
        kit.ShipperChoice(default=()),
    ),
)
