"""ShipEngine: API_TRACK webhooks and tracking answers; every push repeats the whole history.

An event has ShipEngine's `status_code`, or only the code of the operating carrier, or in older
answers neither. The status of the shipment is that of its newest event, so it reads a newest event
without a status of its own. Its carrier code becomes that event's code only where the delivery ends
the history: else the same scan would have a code in one push and none in the next. Movement is a
status for many scans: a finer text of the operating carrier goes before it, and is all that an
event without codes has. `occurred_at` is UTC.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from events.carriers import kit

# (level, code): ShipEngine's `status`; else the operating carrier, empty where all of them mean the
# same.
CODES: Final = kit.meanings("shipengine_codes.csv")

# Texts that operating carriers print of scans that are all movement to ShipEngine, in lower case.
TEXTS: Final = kit.meanings("shipengine_texts.csv")

_by_text = kit.by_sentence({words: meaning for (words,), meaning in TEXTS.items()})

FORMATS: Final = kit.TimeFormats(
    "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d[ %H:%M:%S]"
)
CLOCK: Final = kit.Clock(formats=FORMATS)

_CARRIER: Final = re.compile(r"carrier_code=(?P<query>\w+)|/tracking/(?P<path>\w+)/")
# resellers' accounts of the same carriers: their codes are in one table
_ALSO: Final = {
    "stamps_com": "usps",
    "endicia": "usps",
    "ups_walleted": "ups",
    "fedex_walleted": "fedex",
}
_TRACK: Final = "API_TRACK"
_UNKNOWN: Final = "UN"
_ERROR_FIELDS: Final = frozenset({"errors", "error", "message", "resource_type"})


class Rollup(NamedTuple):
    """The state of the shipment: its status and the carrier's code for it, and
    which carrier that is.
    """

    status: str | None
    carrier_status: str | None
    carrier: str


class Printed(NamedTuple):
    """An event before its code is read."""

    where: str
    event: kit.JsonObject
    place: kit.EventPlace
    time: kit.PrintedTime | None


@kit.normalizer
def normalize(body: bytes, received_at: datetime, rejections: kit.Rejections) -> list[kit.Reading]:
    """Return the events of a webhook or answer; other webhooks hold no scans."""
    push = kit.read_object(body, otherwise="JSON, but no tracking of ShipEngine")
    if not push:
        return []
    where, tracking = ("/data", kit.child(push, "data")) if "data" in push else ("", push)
    if not ("events" in tracking or "tracking_number" in tracking or _ERROR_FIELDS & push.keys()):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of ShipEngine"
        )
    is_untold = kit.text(tracking.get("status_code")) == _UNKNOWN
    # a number that is only registered, or a webhook about something else
    if "events" not in tracking and (
        is_untold or (kit.text(push.get("resource_type")) or _TRACK) != _TRACK
    ):
        rejections.note_nothing()
        return []
    number = kit.text(tracking.get("tracking_number"))
    rollup = _rollup(push, tracking)
    readings = kit.carried_by(
        kit.readings_of(
            _scans(tracking, where, rollup, received_at, rejections), number, rejections
        ),
        rollup.carrier,
    )
    return kit.with_estimate(
        readings, kit.estimate(kit.text(tracking.get("estimated_delivery_date")), FORMATS)
    )


def _rollup(push: kit.JsonObject, tracking: kit.JsonObject) -> Rollup:
    named = _CARRIER.search(kit.text(push.get("resource_url")) or "")
    carrier = (
        # a webhook names the carrier only in the URL of its resource
        kit.text(tracking.get("carrier_code"))
        or (named and (named["query"] or named["path"]))
        or ""
    )
    status = kit.text(tracking.get("status_code"))
    return Rollup(
        status and status.upper(),
        kit.text(tracking.get("carrier_status_code")),
        _ALSO.get(carrier, carrier),
    )


def _scans(
    tracking: kit.JsonObject,
    where: str,
    rollup: Rollup,
    received_at: datetime,
    rejections: kit.Rejections,
) -> Iterator[kit.Scan]:
    journey = kit.Journey(home=kit.home_of(rollup.carrier))
    found = [
        _printed(event, f"{where}/events/{at}", received_at, journey)
        for at, event in kit.objects_at(tracking, "events", where, rejections)
    ]
    # by time, for the list has no promised order
    newest = max((one.time.instant for one in found if one.time is not None), default=None)
    for one in found:
        is_newest = one.time is not None and one.time.instant == newest
        raw, meaning = _said(one.event, rollup, is_newest=is_newest)
        yield kit.Scan(
            where=one.where,
            raw=raw,
            meaning=meaning,
            time=one.time,
            place=one.place,
            description=kit.text(one.event.get("description"))
            or kit.text(one.event.get("event_description")),
            signed_by=one.event.get("signer"),
        )
        # the state of the shipment is one event's, even where several have the same time
        if is_newest:
            newest = None


def _printed(
    event: kit.JsonObject, where: str, received_at: datetime, journey: kit.Journey
) -> Printed:
    where_at = kit.reported_place(
        city=event.get("city_locality"),
        region=event.get("state_province"),
        postal_code=event.get("postal_code"),
        country=event.get("country_code"),
    )
    printed = next(
        (
            at
            for name in ("occurred_at", "event_date", "carrier_occurred_at")
            if (at := kit.text(event.get(name)))
        ),
        None,
    )
    return Printed(
        where,
        event,
        where_at,
        CLOCK.read(printed, where_at, received_at=received_at, journey=journey),
    )


def _said(event: kit.JsonObject, rollup: Rollup, *, is_newest: bool) -> tuple[kit.Raw, kit.Meaning]:
    code, status = kit.text(event.get("event_code")), kit.text(event.get("status_code"))
    raw = kit.Raw(code=code or status, further=(status,) if code and status else ())
    own, worded = (
        _own(status),
        _by_text(
            kit.text(event.get("description")) or kit.text(event.get("event_description")) or ""
        ),
    )
    # the event's own status first; movement alone covers many scans, so a known text is finer
    if own is not None and own.kind is kit.Kind.SCAN:
        return raw, (worded or own) if own.status is kit.Status.IN_TRANSIT else own
    found = CODES.get((rollup.carrier, code or "")) or CODES.get(("", code or "")) or own
    if found is not None or (raw.code is None and worded is not None):
        return raw, found or worded or kit.UNMAPPED
    of_shipment = (
        CODES.get(("status", rollup.status or ""), kit.UNMAPPED) if is_newest else kit.UNMAPPED
    )
    if of_shipment.status is None:
        return raw, kit.UNMAPPED
    # only where the delivery ends the history: else the same scan would have a code in one push and
    # none in the next
    if raw.code is None and of_shipment.status is kit.Status.DELIVERED:
        raw = kit.Raw(code=rollup.carrier_status)
    return raw, of_shipment if code is None else of_shipment.of_category()


def _own(status: str | None) -> kit.Meaning | None:
    return CODES.get(("status", (status or "").upper()))


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read by the event's own status, unless that covers many scans and depends on other fields."""
    own = _own(raw.further[0]) if raw.further else None
    return (
        own
        if own is not None and own.kind is kit.Kind.SCAN and own.status is not kit.Status.IN_TRANSIT
        else None
    )


CARRIER: Final = kit.Carrier(
    carrier_id="shipengine",
    name="ShipEngine",
    number_fields=("tracking_number",),
    normalizers={"1": normalize},
    formats=("API_TRACK webhook JSON", "Tracking answer JSON"),
    reread=_reread,
    authentication=(
        kit.RsaSha256(
            signature_header="x-shipengine-rsa-sha256-signature",
            timestamp_header="x-shipengine-timestamp",
            key_id_header="x-shipengine-rsa-sha256-key-id",
        ),
    ),
)
