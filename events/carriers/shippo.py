"""Shippo: the track object, alone or as `data` of a track_updated webhook.

Every push repeats the history. The status decides. A substatus refines it, but never takes a
delivery back; an unknown substatus leaves the status as it is (`by_category`). `UNKNOWN` has no
meaning. Times are those of the operating carrier, local to the place and falsely labelled `Z`;
Shippo's own timestamps, to the millisecond and as it creates the event, are UTC.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from events.carriers import kit

# (level, code): `status`, `substatus`, and as `silent` the substatuses without effect.
CODES: Final = kit.meanings("shippo_codes.csv")

CLOCK: Final = kit.Clock(formats=kit.ISO, trust_offset=False, midnight_is_day="nowhere")

# for Shippo's own timestamps, whose `Z` is true
STAMPED: Final = kit.Clock(formats=kit.ISO)
STAMPED_WITHIN: Final = timedelta(minutes=1)

PLACEHOLDER: Final = frozenset({"string"})
DECISIVE: Final = frozenset({kit.Status.DELIVERED})

_HISTORY: Final = "tracking_history"
_TRACK_UPDATED: Final = "track_updated"
_UNKNOWN: Final = "UNKNOWN"
_ERROR_FIELDS: Final = frozenset({"detail", "error", "errors", "event", "messages"})


@kit.normalizer
def normalize(body: bytes, received_at: datetime, rejections: kit.Rejections) -> list[kit.Reading]:
    """Return the events of a webhook or answer; other webhooks hold no scans."""
    push = kit.read_object(body, otherwise="JSON, but no track of Shippo")
    if not push:
        return []
    where, track = ("/data", kit.child(push, "data")) if "data" in push else ("", push)
    if not (_HISTORY in track or "tracking_status" in track or _ERROR_FIELDS & push.keys()):
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "JSON, but no track of Shippo")
    if (kit.text(push.get("event")) or _TRACK_UPDATED) != _TRACK_UPDATED or kit.text(
        kit.child(track, "tracking_status").get("status")
    ) == _UNKNOWN:
        rejections.note_nothing()
    level = kit.child(track, "servicelevel")
    service = kit.text(level.get("token")) or kit.text(level.get("name"))
    scans, number = (
        _scans(track, where, received_at, rejections),
        kit.text(track.get("tracking_number")),
    )
    readings = kit.carried_by(
        kit.readings_of(scans, number, rejections, service=service), kit.text(track.get("carrier"))
    )
    return kit.with_estimate(readings, kit.estimate(kit.text(track.get("eta")), kit.ISO))


def _scans(
    track: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    history = track.get(_HISTORY)
    journey = kit.Journey(
        _place(track, "address_from"),
        _place(track, "address_to"),
        kit.home_of(kit.text(track.get("carrier"))),
    )
    for index, event in kit.objects_at(track, _HISTORY, where, rejections, required=False):
        # only within the history: the state of the shipment has no id
        native_id = kit.text_unless(event.get("object_id"), PLACEHOLDER)
        yield _scan(event, f"{where}/{_HISTORY}/{index}", received_at, native_id, journey)
    rollup = kit.child(track, "tracking_status")
    # it repeats the newest of the history, and has no id by which they would be one scan
    if not kit.as_list(history) and kit.text(rollup.get("status")) not in (None, _UNKNOWN):
        yield _scan(rollup, f"{where}/tracking_status", received_at, None, journey)


def _scan(
    event: kit.JsonObject,
    where: str,
    received_at: datetime,
    native_id: str | None,
    journey: kit.Journey,
) -> kit.Scan:
    where_at = _place(event, "location", (journey.origin.country, journey.destination.country))
    status = kit.text(event.get("status"))
    substatus = kit.text(kit.child(event, "substatus").get("code")) or kit.text(
        event.get("substatus")
    )
    raw = kit.Raw(code=status, reason=substatus)
    return kit.Scan(
        where=where,
        raw=raw,
        meaning=(meant := _meaning(raw)),
        time=_clock(event).read(
            kit.text(event.get("status_date")),
            where_at,
            received_at=received_at,
            journey=journey.at(meant.status),
        ),
        place=where_at,
        description=kit.text(event.get("status_details")),
        native_id=native_id,
    )


def _clock(event: kit.JsonObject) -> kit.Clock:
    printed, created = (
        kit.ISO.read(kit.text(event.get("status_date")) or ""),
        kit.ISO.read(kit.text(event.get("object_created")) or ""),
    )
    # carriers print whole seconds: a fraction shows Shippo's own clock
    if printed is None or created is None or not printed.local.microsecond:
        return CLOCK
    # a time of the carrier's may have a fraction too, but not that of the event's creation
    return STAMPED if abs(created.local - printed.local) <= STAMPED_WITHIN else CLOCK


def _place(
    of: kit.JsonObject, name: str, of_shipment: tuple[str | None, ...] = ()
) -> kit.EventPlace:
    at = kit.child(of, name)
    return kit.reported_place(
        city=at.get("city"),
        region=at.get("state"),
        postal_code=at.get("zip"),
        country=at.get("country"),
        of_shipment=of_shipment,
    )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    substatus = raw.reason
    by_status = CODES.get(("status", raw.code or ""))
    if by_status is None:
        return kit.UNMAPPED
    # a delivery with a substatus of trouble (a wrong address once) stays a delivery
    if substatus is None or by_status.status in DECISIVE or ("silent", substatus) in CODES:
        return by_status
    refined = CODES.get(("substatus", substatus))
    if refined is None:
        return by_status.of_category() if by_status.kind is kit.Kind.SCAN else by_status
    return refined


CARRIER: Final = kit.Carrier(
    carrier_id="shippo",
    name="Shippo",
    number_fields=("tracking_number",),
    normalizers={"1": normalize},
    formats=("track_updated webhook JSON", "Track JSON"),
    reread=_meaning,
    authentication=(kit.TimestampedHmac(header="Shippo-Auth-Signature"), kit.UrlToken()),
)
