"""Sendle: the answer of its tracking API, which does not repeat the number, and its webhook.

A webhook holds one event. An event's type is its code. `scan_time` is UTC; the local times next to
it equal it where Sendle does not know the zone, so they are left out. The signer is named in a
sentence of its own, as `Info` after the delivery.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# The type in lower case.
CODES: Final = kit.meanings("sendle_codes.csv")

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d[ %H:%M:%S]"
    ),
    default_zone="Australia/Sydney",
)

_EVENTS: Final = "tracking_events"
_EVENT_FIELDS: Final = frozenset({"event_type", "scan_time"})
_ERROR_FIELDS: Final = frozenset({"error", "error_description", "errors", "messages", "state"})
_SIGNED: Final = re.compile(r"Your parcel was signed for by (?P<name>.+)")


@kit.normalizer
def normalize(body: bytes, received_at: datetime, rejections: kit.Rejections) -> list[kit.Reading]:
    order = kit.read_json(body)
    if order in ({}, []):
        return []
    if type(order) is not dict or not (
        {_EVENTS, *_EVENT_FIELDS} & order.keys() or _ERROR_FIELDS & order.keys()
    ):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Sendle"
        )
    # a webhook's: an answer does not repeat its number
    number = kit.text(order.get("sendle_reference")) or kit.text(order.get("tracking_id"))
    readings = kit.readings_of(_scans(order, received_at, rejections), number, rejections)
    # named in a sentence of its own, as `Info` after the delivery
    signed = (_SIGNED.fullmatch(reading.description or "") for reading in readings)
    readings = kit.with_signer(
        readings, next((kit.signer(found["name"]) for found in signed if found), None)
    )
    return kit.with_estimate(
        readings,
        kit.estimate(
            kit.text(kit.child(order, "scheduling").get("estimated_delivery_date_maximum")), kit.ISO
        ),
    )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    return CODES.get(((raw.code or "").lower(),), kit.UNMAPPED)


def _place(event: kit.JsonObject, country: str | None) -> kit.EventPlace:
    """Return the place of a line; a webhook prints its parts as well.

    `country`: that of the whole shipment.
    """
    line = kit.text(event.get("location")) or kit.text(event.get("origin_location"))
    parts = kit.child(event, "location_data")
    at = kit.position_in_line(
        line, country=kit.text(parts.get("country")) or (country if line else None)
    )
    city, region = (
        at.city or kit.text(parts.get("suburb")),
        at.region or kit.text(parts.get("state")),
    )
    return kit.place(
        city=city,
        region=region,
        postal_code=at.postal_code or parts.get("postcode"),
        country=at.country,
    )


def _scans(
    order: kit.JsonObject, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    origin, destination = (
        kit.text(kit.child(order, end).get("country")) for end in ("origin", "destination")
    )
    # a line of a shipment abroad may be at either end
    country = origin if origin == destination else None
    pushed = _EVENTS not in order and _EVENT_FIELDS & order.keys()
    for index, event in [(0, order)] if pushed else kit.objects_at(order, _EVENTS, "", rejections):
        raw, words, reason = (
            kit.Raw(code=kit.text(event.get("event_type"))),
            kit.text(event.get("description")),
            kit.text(event.get("reason")),
        )
        where_at = _place(event, country)
        yield kit.Scan(
            where="" if pushed else f"/{_EVENTS}/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(kit.text(event.get("scan_time")), where_at, received_at=received_at),
            place=where_at,
            description=f"{words} ({reason})" if words and reason else words or reason,
        )


CARRIER: Final = kit.Carrier(
    carrier_id="sendle",
    name="Sendle",
    number_fields=("sendle_reference|tracking_id",),
    normalizers={"1": normalize},
    formats=("Tracking API JSON", "Tracking webhook JSON"),
    reread=_meaning,
    texts=kit.texts_of(CODES),
    authentication=(kit.ShipperChoice(),),
)
