"""Sendle: the answer of its tracking API, which does not repeat the number that was asked for, and its webhook, which holds one event.

An event's type is its code. `scan_time` is UTC; the local times next to it equal it where Sendle does not know the zone, so they are left
out. Who signed is named by a sentence of its own, as `Info` after the delivery.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Raw, Reading
from events.parsing.enrichment import estimate, with_estimate, with_signer
from events.parsing.formats import ISO, TimeFormats
from events.parsing.json import read_json
from events.parsing.lines import position_in_line
from events.parsing.lists import JsonObject, child, objects_at
from events.parsing.meanings import UNMAPPED, Meaning, meanings, texts_of
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import signer, text
from events.parsing.times import Clock

CODES: Final = meanings("sendle_codes.csv")
"""The type in lower case."""

CLOCK: Final = Clock(
    formats=TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d[ %H:%M:%S]"),
    default_zone="Australia/Sydney",
)

_EVENTS: Final = "tracking_events"
_EVENT_FIELDS: Final = frozenset({"event_type", "scan_time"})
_ERROR_FIELDS: Final = frozenset({"error", "error_description", "errors", "messages", "state"})
_SIGNED: Final = re.compile(r"Your parcel was signed for by (?P<name>.+)")


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> list[Reading]:
    """Return the events of one answer or webhook."""
    order = read_json(body)
    if order in ({}, []):
        return []
    if type(order) is not dict or not (
        {_EVENTS, *_EVENT_FIELDS} & order.keys() or _ERROR_FIELDS & order.keys()
    ):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Sendle")
    number = text(order.get("sendle_reference")) or text(order.get("tracking_id"))
    readings = readings_of(_scans(order, received_at, rejections), number, rejections)
    signed = (_SIGNED.fullmatch(reading.description or "") for reading in readings)
    readings = with_signer(
        readings, next((signer(found["name"]) for found in signed if found), None)
    )
    return with_estimate(
        readings,
        estimate(text(child(order, "scheduling").get("estimated_delivery_date_maximum")), ISO),
    )


def _meaning(raw: Raw) -> Meaning:
    return CODES.get(((raw.code or "").lower(),), UNMAPPED)


def _place(event: JsonObject, country: str | None) -> EventPlace:
    """Return the place of a line; a webhook prints its parts as well. `country`: that of the whole shipment."""
    line = text(event.get("location")) or text(event.get("origin_location"))
    parts = child(event, "location_data")
    at = position_in_line(line, country=text(parts.get("country")) or (country if line else None))
    city, region = at.city or text(parts.get("suburb")), at.region or text(parts.get("state"))
    return place(
        city=city,
        region=region,
        postal_code=at.postal_code or parts.get("postcode"),
        country=at.country,
    )


def _scans(order: JsonObject, received_at: datetime, rejections: Rejections) -> Iterator[Scan]:
    origin, destination = (
        text(child(order, end).get("country")) for end in ("origin", "destination")
    )
    country = origin if origin == destination else None
    pushed = _EVENTS not in order and _EVENT_FIELDS & order.keys()
    for index, event in [(0, order)] if pushed else objects_at(order, _EVENTS, "", rejections):
        raw, words, reason = (
            Raw(code=text(event.get("event_type"))),
            text(event.get("description")),
            text(event.get("reason")),
        )
        where_at = _place(event, country)
        yield Scan(
            where="" if pushed else f"/{_EVENTS}/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(text(event.get("scan_time")), where_at, received_at=received_at),
            place=where_at,
            description=f"{words} ({reason})" if words and reason else words or reason,
        )


CARRIER: Final = Carrier(
    carrier_id="sendle",
    name="Sendle",
    number_fields=("sendle_reference|tracking_id",),
    normalizers={"1": normalize},
    formats=("Tracking API JSON", "Tracking webhook JSON"),
    reread=_meaning,
    texts=texts_of(CODES),
    authentication=(ShipperChoice(),),
)
