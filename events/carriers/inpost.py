"""InPost: webhooks and tracking answers of ShipX (Poland, Italy), events and answers of the group's API (all countries).

ShipX names a status, the group's API an event by its code; each has a list of its own. The app's API prints the statuses of ShipX in
capitals. A webhook of ShipX about anything but a status (an
offer) says nothing of a parcel. The group's `eventId` is not taken: its part before `#` is of the parcel as often as of the event, so two
scans with one code might carry one id.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from events.carriers.carrier import Carrier, Hmac, RsaSha256, ShipperChoice, TimestampedHmac
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Raw, Reading
from events.parsing.enrichment import with_signer
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child, object_at, objects_at
from events.parsing.meanings import UNMAPPED, Meaning, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("inpost_codes.csv")
"""Statuses and events of ShipX, codes of the group's API: their names never meet."""

CLOCK: Final = Clock(
    formats=TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d %H:%M:%S[%f][ %z]"),
    default_zone="Europe/Warsaw",
)

_LOG: Final = "eventLog"
_PUSH: Final = frozenset({"event", "event_ts", "payload"})
_ERROR_FIELDS: Final = frozenset({"error", "errors", "title", "detail", "message"})
_WITHOUT_STATE: Final = frozenset({"offers_prepared"})
_WITHOUT_STATUS: Final = frozenset({"shipment_confirmed"})
"""Webhooks of ShipX that name a state of the parcel by their own name."""


class _Parcel(NamedTuple):
    number: str | None
    scans: Iterable[Scan]
    recipient: str | None = None
    service: str | None = None


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    for parcel in _parcels(read_json(body), received_at, rejections):
        yield from with_signer(
            readings_of(parcel.scans, parcel.number, rejections, service=parcel.service),
            parcel.recipient,
        )


def _parcels(body: object, received_at: datetime, rejections: Rejections) -> Iterator[_Parcel]:
    if body in ({}, []):
        return
    if type(body) is not dict:
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but nothing of InPost")
    if body.keys() >= _PUSH:
        payload = object_at(body, "payload", "", rejections)
        yield _Parcel(
            text(payload.get("tracking_number")), _push(body, payload, received_at, rejections)
        )
    elif "tracking_details" in body:
        yield _Parcel(
            text(body.get("tracking_number")),
            _shipx(body, received_at, rejections),
            service=text(body.get("service")),
        )
    elif "eventCode" in body:
        yield _Parcel(text(body.get("trackingNumber")), (_event(body, "", received_at),))
    elif _LOG in body:
        yield _listed(body, "", received_at, rejections)
    elif "parcels" in body:
        for index, found in objects_at(body, "parcels", "", rejections):
            yield _listed(found, f"/parcels/{index}", received_at, rejections)
    elif not _ERROR_FIELDS & body.keys():
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "JSON, but neither a webhook nor an answer of InPost"
        )


def _listed(
    parcel: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> _Parcel:
    if _LOG in parcel:
        return _Parcel(
            text(parcel.get("shipmentNumber")), _log(parcel, where, received_at, rejections)
        )
    return _Parcel(
        text(parcel.get("trackingNumber")),
        _events(parcel, where, received_at, rejections),
        _recipient(parcel),
    )


def _push(
    push: JsonObject, payload: JsonObject, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    if text(push.get("event")) in _WITHOUT_STATE:
        rejections.note_nothing()
    if _says_no_state(push, payload):
        return
    raw = Raw(code=text(payload.get("status")) or text(push.get("event")))
    yield Scan(
        where="/payload",
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(text(push.get("event_ts")), received_at=received_at),
    )


def _says_no_state(push: JsonObject, payload: JsonObject) -> bool:
    return text(payload.get("status")) is None and text(push.get("event")) not in _WITHOUT_STATUS


def _shipx(parcel: JsonObject, received_at: datetime, rejections: Rejections) -> Iterator[Scan]:
    """Yield the history. `agency` is the branch; `origin_status` is the status in the words of the system behind ShipX."""
    for index, step in objects_at(parcel, "tracking_details", "", rejections):
        raw = Raw(code=text(step.get("status")), reason=text(step.get("origin_status")))
        yield Scan(
            where=f"/tracking_details/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(text(step.get("datetime")), received_at=received_at),
            place=place(facility=step.get("agency")),
        )


def _log(
    parcel: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, step in objects_at(parcel, _LOG, where, rejections):
        raw, printed = Raw(code=text(step.get("name"))), text(step.get("date"))
        yield Scan(
            where=f"{where}/{_LOG}/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(printed, received_at=received_at),
        )


def _meaning(raw: Raw) -> Meaning:
    code = raw.code or ""
    return CODES.get((code,)) or CODES.get((code.lower(),), UNMAPPED)


def _events(
    parcel: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, event in objects_at(parcel, "events", where, rejections):
        yield _event(event, f"{where}/events/{index}", received_at)


def _event(event: JsonObject, where: str, received_at: datetime) -> Scan:
    raw, where_at = Raw(code=text(event.get("eventCode"))), _place(child(event, "location"))
    printed = text(event.get("timestamp")) or text(event.get("eventTimestamp"))
    return Scan(
        where=where,
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(printed, where_at, received_at=received_at),
        place=where_at,
        description=text(event.get("eventDescription")) or text(event.get("eventTitle")),
        signed_by=_recipient(event),
    )


def _place(location: JsonObject) -> EventPlace:
    return place(
        city=location.get("city"),
        postal_code=location.get("postalCode"),
        country=location.get("country"),
        facility=location.get("id") or location.get("name"),
    )


def _recipient(of: JsonObject) -> str | None:
    return text(child(of, "delivery").get("recipientName"))


CARRIER: Final = Carrier(
    carrier_id="inpost",
    name="InPost",
    number_fields=("tracking_number", "trackingNumber", "shipmentNumber"),
    normalizers={"1": normalize},
    formats=(
        "ShipX webhook JSON",
        "ShipX tracking JSON",
        "Group API tracking event JSON",
        "Group API tracking JSON",
        "App API JSON",
    ),
    reread=_meaning,
    authentication=(
        # InPost sets for each client whether it signs by HMAC or RSA, and whether the body alone
        Hmac(header="x-inpost-signature", encoding="base64"),
        TimestampedHmac(
            header="x-inpost-signature", stamp_header="x-inpost-timestamp", encoding="base64"
        ),
        RsaSha256(signature_header="x-inpost-signature"),
        RsaSha256(signature_header="x-inpost-signature", timestamp_header="x-inpost-timestamp"),
        ShipperChoice(default=()),
    ),
)
