"""TrackingMore: webhooks and answers of API v4, and the field names of the versions before it.

A substatus decides, the delivery status is coarser. Times are local to the place of the scan and print no zone. What the carrier of origin
says and what the one of destination says are two lists; one scan may stand in both.

TrackingMore signs the time of its push and not the body, so its signature proves nothing of what is said and is no scheme here.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Raw, Reading
from events.parsing.enrichment import estimate, with_estimate, with_signer
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lines import reported_place
from events.parsing.lists import JsonObject, object_at, objects, objects_at
from events.parsing.meanings import Meaning, finest, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, carried_by, readings_of
from events.parsing.silence import holds_dated
from events.parsing.text import text
from events.parsing.times import Clock
from events.parsing.whereabouts import Journey, home_of, origin_of_item

CODES: Final = meanings("trackingmore_codes.csv")
"""Statuses and substatuses: their names never meet."""

FORMATS: Final = TimeFormats("%Y-%m-%d[ %H:%M[:%S]]", "%Y-%m-%dT%H:%M:%S[%f][%z]")
CLOCK: Final = Clock(formats=FORMATS, midnight_is_day=True)

_LEGS: Final = ("origin_info", "destination_info")
_KNOWN_LEGS: Final = frozenset(_LEGS)
_ERROR_FIELDS: Final = frozenset({"code", "meta", "message", "error", "errors"})
_SHIPMENT: Final = frozenset({"tracking_number", *_LEGS})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    for where, shipment in _shipments(read_json(body), rejections):
        found = readings_of(
            _scans(shipment, where, received_at, rejections),
            text(shipment.get("tracking_number")),
            rejections,
        )
        found = with_signer(carried_by(found, _courier(shipment)), text(shipment.get("signed_by")))
        yield from with_estimate(
            found, estimate(text(shipment.get("scheduled_delivery_date")), FORMATS)
        )


def _shipments(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is not dict or not (_ERROR_FIELDS | _SHIPMENT | {"data"}) & body.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no tracking of TrackingMore")
    if body.keys() & _SHIPMENT:
        yield "", body
        return
    data = body.get("data")
    held, pointer = (
        (data["items"], "/data/items")
        if type(data) is dict and "items" in data
        else (data, "/data")
    )
    for index, shipment in objects(held, pointer, rejections):
        yield f"{pointer}/{index}", shipment


def _scans(
    shipment: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    origin = place(country=shipment.get("origin_country"))
    journey = Journey(
        origin if origin.country else origin_of_item(text(shipment.get("tracking_number"))),
        place(country=shipment.get("destination_country")),
        home_of(_courier(shipment)),
    )
    if not shipment.keys() & _KNOWN_LEGS and not holds_dated(shipment):
        # the answer to the registration of a number
        rejections.note_nothing()
    for leg in _LEGS:
        pointer = f"{where}/{leg}/trackinfo"
        at_leg = object_at(shipment, leg, where, rejections, required=False, but=_KNOWN_LEGS)
        for index, step in objects_at(at_leg, "trackinfo", f"{where}/{leg}", rejections):
            status = text(step.get("checkpoint_delivery_status")) or text(
                step.get("checkpoint_status")
            )
            raw = Raw(
                type=status,
                code=text(step.get("checkpoint_delivery_substatus")) or text(step.get("substatus")),
            )
            at, meaning = (
                _place(step, (journey.origin.country, journey.destination.country)),
                _meaning(raw),
            )
            printed = text(step.get("checkpoint_date")) or text(step.get("Date"))
            yield Scan(
                where=f"{pointer}/{index}",
                raw=raw,
                meaning=meaning,
                time=CLOCK.read(
                    printed, at, received_at=received_at, journey=journey.at(meaning.status)
                ),
                place=at,
                description=text(step.get("tracking_detail"))
                or text(step.get("StatusDescription")),
            )


def _courier(shipment: JsonObject) -> str | None:
    return text(shipment.get("courier_code")) or text(shipment.get("carrier_code"))


def _place(step: JsonObject, of_shipment: tuple[str | None, ...]) -> EventPlace:
    """Read the place from fields of their own, or from one line (`PASADENA,MD,US`)."""
    return reported_place(
        text(step.get("location")) or text(step.get("Details")),
        city=step.get("city"),
        region=step.get("state"),
        postal_code=step.get("zip"),
        country=step.get("country_iso2"),
        of_shipment=of_shipment,
    )


def _meaning(raw: Raw) -> Meaning:
    return finest(
        (raw.code, CODES.get(((raw.code or "").lower(),))),
        (raw.type, CODES.get(((raw.type or "").lower(),))),
    )


CARRIER: Final = Carrier(
    carrier_id="trackingmore",
    name="TrackingMore",
    number_fields=("tracking_number",),
    normalizers={"1": normalize},
    formats=("Webhook v4 JSON", "Tracking JSON"),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
