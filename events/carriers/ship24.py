"""Ship24: webhooks and API answers, a list of trackings with their events; a resend repeats all of them.

An event has an id of its own and, after a change of carrier, another number than its tracker. Many events have no code; then its
milestone is the category (`by_category`). `occurrenceDatetime` is local to the event, with its offset in a field of its own where Ship24
knows it; the `Z` of `datetime` is not true then.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, SharedHeader, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, PrintedTime, Raw, Reading
from events.parsing.enrichment import estimate, with_estimate, with_signer
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lines import reported_place
from events.parsing.lists import JsonObject, child, objects_at
from events.parsing.meanings import UNMAPPED, Meaning, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, carried_by, readings_of
from events.parsing.text import signer, text
from events.parsing.times import Clock
from events.parsing.whereabouts import Journey, home_of
from events.vocabulary import TimePrecision

CODES: Final = meanings("ship24_codes.csv")
"""(level, code): `code`, or `milestone` where an event has no code that is known; an empty milestone says nothing."""

FORMATS: Final = TimeFormats(
    "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d[ %H:%M:%S]"
)
CLOCK: Final = Clock(formats=FORMATS)
CLOCK_WITH_FALSE_Z: Final = Clock(formats=FORMATS, trust_offset=False)

_TRACKINGS: Final = "trackings"
_OTHER_TOPIC: Final = "tracking/pod"
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one webhook or answer; other topics say nothing about scans."""
    for where, tracking in _trackings(read_json(body), "", rejections):
        delivery = child(tracking, "shipment", "delivery")
        found = with_signer(
            _readings(tracking, where, received_at, rejections), signer(delivery.get("signedBy"))
        )
        yield from with_estimate(
            found, estimate(text(delivery.get("estimatedDeliveryDate")), FORMATS)
        )


def _trackings(
    body: object, where: str, rejections: Rejections
) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is dict and _TRACKINGS in body:
        for index, tracking in objects_at(body, _TRACKINGS, where, rejections):
            if text(child(tracking, "metadata").get("topic")) == _OTHER_TOPIC:
                rejections.note_nothing()
            else:
                yield f"{where}/{_TRACKINGS}/{index}", tracking
    elif type(body) is dict and "tracker" in body:
        yield where, body
    elif type(body) is dict and child(body, "data"):
        yield from _trackings(child(body, "data"), f"{where}/data", rejections)
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no trackings of Ship24")


def _readings(
    tracking: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> list[Reading]:
    of_tracker = text(child(tracking, "tracker").get("trackingNumber"))
    shipment = child(tracking, "shipment")
    service = text(child(shipment, "delivery").get("service"))
    journey = Journey(
        place(country=shipment.get("originCountryCode")),
        place(country=shipment.get("destinationCountryCode")),
    )
    found = []
    for index, event in objects_at(tracking, "events", where, rejections):
        number = (
            text(event.get("eventTrackingNumber"))
            or text(event.get("trackingNumber"))
            or of_tracker
        )
        scan = _scan(event, f"{where}/events/{index}", received_at, journey)
        found += carried_by(
            readings_of((scan,), number, rejections, service=service),
            text(event.get("courierCode")),
        )
    return found


def _scan(event: JsonObject, where: str, received_at: datetime, journey: Journey) -> Scan:
    raw = Raw(code=text(event.get("statusCode")))
    is_american = (text(event.get("courierCode")) or "").startswith("us")
    of_shipment = ("US",) if is_american else (journey.origin.country, journey.destination.country)
    where_at = reported_place(text(event.get("location")), of_shipment=of_shipment)
    return Scan(
        where=where,
        raw=raw,
        meaning=(meant := _reread(raw) or _by_milestone(raw, text(event.get("statusMilestone")))),
        time=_time(
            event,
            where_at,
            received_at,
            journey.at(meant.status)._replace(home=home_of(text(event.get("courierCode")))),
        ),
        place=where_at,
        description=text(event.get("status")),
        native_id=text(event.get("eventId")),
    )


def _reread(raw: Raw) -> Meaning | None:
    """Read a known code; an event without one is read by its milestone, which the raw fields lack."""
    return CODES.get(("code", raw.code or ""))


def _by_milestone(raw: Raw, milestone: str | None) -> Meaning:
    found = CODES.get(("milestone", milestone or ""), UNMAPPED)
    if found.status is None:
        return UNMAPPED if raw.code else found
    return found.of_category()


def _time(
    event: JsonObject, where: EventPlace, received_at: datetime, journey: Journey
) -> PrintedTime | None:
    offset = text(event.get("utcOffset"))
    printed = text(event.get("occurrenceDatetime"))
    if printed is not None:
        time = CLOCK.read_with_offset(
            printed, offset, where, received_at=received_at, journey=journey
        )
    else:
        clock = CLOCK_WITH_FALSE_Z if offset is None else CLOCK
        time = clock.read(
            text(event.get("datetime")), where, received_at=received_at, journey=journey
        )
    return (
        replace(time, precision=TimePrecision.DAY)
        if time is not None and event.get("hasNoTime") is True
        else time
    )


CARRIER: Final = Carrier(
    carrier_id="ship24",
    name="Ship24",
    number_fields=("trackingNumber", "eventTrackingNumber", "trackingNumbers.tn"),
    normalizers={"1": normalize},
    formats=("Webhook JSON", "Tracking API JSON"),
    reread=_reread,
    authentication=(
        SharedHeader(header="Authorization", prefix="Bearer "),
        ShipperChoice(default=()),
    ),
)
