"""Shippo: the track object, by itself or as `data` of a track_updated webhook; every push repeats the history.

The status decides. A substatus refines it, but never takes a delivery back; one that is not known leaves the status as it is
(`by_category`). `UNKNOWN` says nothing. Times are those of the operating carrier, local to the place and falsely labelled `Z`; what Shippo
stamps itself, to the millisecond and as it creates the event, is UTC.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from events.carriers.carrier import Carrier, TimestampedHmac, UrlToken
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import ISO
from events.parsing.json import read_object
from events.parsing.lines import reported_place
from events.parsing.lists import JsonObject, as_list, child, objects_at
from events.parsing.meanings import UNMAPPED, Meaning, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, carried_by, readings_of
from events.parsing.text import text, text_unless
from events.parsing.times import Clock
from events.parsing.whereabouts import Journey, home_of
from events.vocabulary import Kind, Status

CODES: Final = meanings("shippo_codes.csv")
"""(level, code): `status`, `substatus`, and those substatuses that add nothing as `silent`."""

CLOCK: Final = Clock(formats=ISO, trust_offset=False, midnight_is_day="nowhere")

STAMPED: Final = Clock(formats=ISO)
STAMPED_WITHIN: Final = timedelta(minutes=1)

PLACEHOLDER: Final = frozenset({"string"})
DECISIVE: Final = frozenset({Status.DELIVERED})

_HISTORY: Final = "tracking_history"
_TRACK_UPDATED: Final = "track_updated"
_UNKNOWN: Final = "UNKNOWN"
_ERROR_FIELDS: Final = frozenset({"detail", "error", "errors", "event", "messages"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> list[Reading]:
    """Return the events of one webhook or answer; other webhooks say nothing about scans."""
    push = read_object(body, otherwise="JSON, but no track of Shippo")
    if not push:
        return []
    where, track = ("/data", child(push, "data")) if "data" in push else ("", push)
    if not (_HISTORY in track or "tracking_status" in track or _ERROR_FIELDS & push.keys()):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no track of Shippo")
    if (text(push.get("event")) or _TRACK_UPDATED) != _TRACK_UPDATED or text(
        child(track, "tracking_status").get("status")
    ) == _UNKNOWN:
        rejections.note_nothing()
    level = child(track, "servicelevel")
    service = text(level.get("token")) or text(level.get("name"))
    scans, number = (
        _scans(track, where, received_at, rejections),
        text(track.get("tracking_number")),
    )
    readings = carried_by(
        readings_of(scans, number, rejections, service=service), text(track.get("carrier"))
    )
    return with_estimate(readings, estimate(text(track.get("eta")), ISO))


def _scans(
    track: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    history = track.get(_HISTORY)
    journey = Journey(
        _place(track, "address_from"),
        _place(track, "address_to"),
        home_of(text(track.get("carrier"))),
    )
    for index, event in objects_at(track, _HISTORY, where, rejections, required=False):
        native_id = text_unless(event.get("object_id"), PLACEHOLDER)
        yield _scan(event, f"{where}/{_HISTORY}/{index}", received_at, native_id, journey)
    rollup = child(track, "tracking_status")
    if not as_list(history) and text(rollup.get("status")) not in (None, _UNKNOWN):
        yield _scan(rollup, f"{where}/tracking_status", received_at, None, journey)


def _scan(
    event: JsonObject, where: str, received_at: datetime, native_id: str | None, journey: Journey
) -> Scan:
    where_at = _place(event, "location", (journey.origin.country, journey.destination.country))
    status = text(event.get("status"))
    substatus = text(child(event, "substatus").get("code")) or text(event.get("substatus"))
    raw = Raw(code=status, reason=substatus)
    return Scan(
        where=where,
        raw=raw,
        meaning=(meant := _meaning(raw)),
        time=_clock(event).read(
            text(event.get("status_date")),
            where_at,
            received_at=received_at,
            journey=journey.at(meant.status),
        ),
        place=where_at,
        description=text(event.get("status_details")),
        native_id=native_id,
    )


def _clock(event: JsonObject) -> Clock:
    printed, created = (
        ISO.read(text(event.get("status_date")) or ""),
        ISO.read(text(event.get("object_created")) or ""),
    )
    if printed is None or created is None or not printed.local.microsecond:
        return CLOCK
    return STAMPED if abs(created.local - printed.local) <= STAMPED_WITHIN else CLOCK


def _place(of: JsonObject, name: str, of_shipment: tuple[str | None, ...] = ()) -> EventPlace:
    at = child(of, name)
    return reported_place(
        city=at.get("city"),
        region=at.get("state"),
        postal_code=at.get("zip"),
        country=at.get("country"),
        of_shipment=of_shipment,
    )


def _meaning(raw: Raw) -> Meaning:
    substatus = raw.reason
    by_status = CODES.get(("status", raw.code or ""))
    if by_status is None:
        return UNMAPPED
    if substatus is None or by_status.status in DECISIVE or ("silent", substatus) in CODES:
        return by_status
    refined = CODES.get(("substatus", substatus))
    if refined is None:
        return by_status.of_category() if by_status.kind is Kind.SCAN else by_status
    return refined


CARRIER: Final = Carrier(
    carrier_id="shippo",
    name="Shippo",
    number_fields=("tracking_number",),
    normalizers={"1": normalize},
    formats=("track_updated webhook JSON", "Track JSON"),
    reread=_meaning,
    authentication=(TimestampedHmac(header="Shippo-Auth-Signature"), UrlToken()),
)
