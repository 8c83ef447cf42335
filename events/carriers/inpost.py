"""InPost: webhooks and answers of ShipX (Poland, Italy), and of the group's API (all countries).

ShipX names a status, the group's API an event by its code; each has a list of its own. The app's
API prints the statuses of ShipX in capitals. A webhook of ShipX about other subjects than a status
(an offer) has no scans. The group's `eventId` is not taken: its part before `#` is of the parcel as
often as of the event, so two scans with the same code might carry the same id.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from events.carriers import kit

# Statuses and events of ShipX, codes of the group's API: their names never meet.
CODES: Final = kit.meanings("inpost_codes.csv")

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d %H:%M:%S[%f][ %z]"),
    default_zone="Europe/Warsaw",
)

_LOG: Final = "eventLog"
_PUSH: Final = frozenset({"event", "event_ts", "payload"})
_ERROR_FIELDS: Final = frozenset({"error", "errors", "title", "detail", "message"})
_WITHOUT_STATE: Final = frozenset({"offers_prepared"})
# Webhooks of ShipX that name a state of the parcel by their own name.
_WITHOUT_STATUS: Final = frozenset({"shipment_confirmed"})


class _Parcel(NamedTuple):
    number: str | None
    scans: Iterable[kit.Scan]
    recipient: str | None = None
    service: str | None = None


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for parcel in _parcels(kit.read_json(body), received_at, rejections):
        yield from kit.with_signer(
            kit.readings_of(parcel.scans, parcel.number, rejections, service=parcel.service),
            parcel.recipient,
        )


def _parcels(body: object, received_at: datetime, rejections: kit.Rejections) -> Iterator[_Parcel]:
    if type(body) is not dict:
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "JSON, but nothing of InPost")
    # all three: a tracking answer may have a `payload` or an `event` of its own
    if body.keys() >= _PUSH:
        payload = kit.object_at(body, "payload", "", rejections)
        yield _Parcel(
            kit.text(payload.get("tracking_number")), _push(body, payload, received_at, rejections)
        )
    elif "tracking_details" in body:
        yield _Parcel(
            kit.text(body.get("tracking_number")),
            _shipx(body, received_at, rejections),
            service=kit.text(body.get("service")),
        )
    elif "eventCode" in body:
        yield _Parcel(kit.text(body.get("trackingNumber")), (_event(body, "", received_at),))
    elif _LOG in body:
        yield _listed(body, "", received_at, rejections)
    elif "parcels" in body:
        for index, found in kit.objects_at(body, "parcels", "", rejections):
            yield _listed(found, f"/parcels/{index}", received_at, rejections)
    elif not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but neither a webhook nor an answer of InPost"
        )


def _listed(
    parcel: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> _Parcel:
    if _LOG in parcel:
        return _Parcel(
            kit.text(parcel.get("shipmentNumber")), _log(parcel, where, received_at, rejections)
        )
    return _Parcel(
        kit.text(parcel.get("trackingNumber")),
        _events(parcel, where, received_at, rejections),
        _recipient(parcel),
    )


def _push(
    push: kit.JsonObject, payload: kit.JsonObject, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    if kit.text(push.get("event")) in _WITHOUT_STATE:
        rejections.note_nothing()
    if _says_no_state(push, payload):
        return
    # a webhook about a confirmation names no status: its own name is the state
    raw = kit.Raw(code=kit.text(payload.get("status")) or kit.text(push.get("event")))
    yield kit.Scan(
        where="/payload",
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(kit.text(push.get("event_ts")), received_at=received_at),
    )


def _says_no_state(push: kit.JsonObject, payload: kit.JsonObject) -> bool:
    return (
        kit.text(payload.get("status")) is None
        and kit.text(push.get("event")) not in _WITHOUT_STATUS
    )


def _shipx(
    parcel: kit.JsonObject, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    """Yield the history.

    `agency` is the branch; `origin_status` is the status in the words of the system behind ShipX.
    """
    for index, step in kit.objects_at(parcel, "tracking_details", "", rejections):
        # the system behind ShipX has finer words, kept for evidence and not read
        raw = kit.Raw(code=kit.text(step.get("status")), reason=kit.text(step.get("origin_status")))
        yield kit.Scan(
            where=f"/tracking_details/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(kit.text(step.get("datetime")), received_at=received_at),
            place=kit.place(facility=step.get("agency")),
        )


def _log(
    parcel: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, step in kit.objects_at(parcel, _LOG, where, rejections):
        raw, printed = kit.Raw(code=kit.text(step.get("name"))), kit.text(step.get("date"))
        yield kit.Scan(
            where=f"{where}/{_LOG}/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(printed, received_at=received_at),
        )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    code = raw.code or ""
    # the app's API prints the statuses of ShipX in capitals
    return CODES.get((code,)) or CODES.get((code.lower(),), kit.UNMAPPED)


def _events(
    parcel: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(parcel, "events", where, rejections):
        yield _event(event, f"{where}/events/{index}", received_at)


def _event(event: kit.JsonObject, where: str, received_at: datetime) -> kit.Scan:
    raw, where_at = (
        kit.Raw(code=kit.text(event.get("eventCode"))),
        _place(kit.child(event, "location")),
    )
    printed = kit.text(event.get("timestamp")) or kit.text(event.get("eventTimestamp"))
    return kit.Scan(
        where=where,
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(printed, where_at, received_at=received_at),
        place=where_at,
        description=kit.text(event.get("eventDescription")) or kit.text(event.get("eventTitle")),
        signed_by=_recipient(event),
    )


def _place(location: kit.JsonObject) -> kit.EventPlace:
    return kit.place(
        city=location.get("city"),
        postal_code=location.get("postalCode"),
        country=location.get("country"),
        facility=location.get("id") or location.get("name"),
    )


def _recipient(of: kit.JsonObject) -> str | None:
    return kit.text(kit.child(of, "delivery").get("recipientName"))


CARRIER: Final = kit.Carrier(
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
        kit.Hmac(header="x-inpost-signature", encoding="base64"),
        kit.TimestampedHmac(
            header="x-inpost-signature", stamp_header="x-inpost-timestamp", encoding="base64"
        ),
        kit.RsaSha256(signature_header="x-inpost-signature"),
        kit.RsaSha256(signature_header="x-inpost-signature", timestamp_header="x-inpost-timestamp"),
        kit.ShipperChoice(default=()),
    ),
)
