"""Sendcloud: webhooks that state the present status of one parcel, and the tracking of version 3 (`sendcloud_events`).

The webhook of an integration has no history and no place. A status holds since the carrier changed it
(`carrier_status_change_timestamp`), else since the push. Missing values are printed as `false`. Parcels that have no tracking number
yet, and webhooks that are not about a parcel's status, exist.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import sendcloud_events
from events.carriers.carrier import Carrier, Hmac, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import PrintedTime, Raw, Reading
from events.parsing.json import read_object
from events.parsing.lists import JsonObject, child, object_at
from events.parsing.meanings import Meaning, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import read_epoch

CODES: Final = meanings("sendcloud_codes.csv")

SECONDS_MAX: Final = 10**11
"""An epoch beyond it is in milliseconds."""

_OF_INTEGRATIONS: Final = "integration_"
"""Prefix of the actions that are about the shop, not about a parcel."""
_ENVELOPE: Final = frozenset({"action", "parcel", "timestamp", "error", "errors"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> list[Reading]:
    """Yield the events of one push or answer."""
    push = read_object(body, otherwise="JSON, but nothing of Sendcloud")
    if not push:
        return []
    return _readings(push, received_at, rejections)


def _readings(push: JsonObject, received_at: datetime, rejections: Rejections) -> list[Reading]:
    if "event_type" in push and "data" in push:
        return sendcloud_events.readings_of_push(child(push, "data"), received_at, rejections)
    if "tracking_numbers" in push:
        return sendcloud_events.readings_of_answer(push, received_at, rejections)
    if not _ENVELOPE & push.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no webhook of Sendcloud")
    if (text(push.get("action")) or "").startswith(_OF_INTEGRATIONS):
        rejections.note_nothing()
        return []
    parcel = object_at(push, "parcel", "", rejections)
    service = text(child(parcel, "shipment").get("name"))
    return readings_of(
        _scans(push, parcel, received_at, rejections),
        text(parcel.get("tracking_number")),
        rejections,
        service=service,
    )


def _meaning(raw: Raw) -> Meaning:
    return CODES.get((raw.code or "",)) or sendcloud_events.meaning(raw)


def _scans(
    push: JsonObject, parcel: JsonObject, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    status = object_at(parcel, "status", "/parcel", rejections)
    if not status:
        return
    code = text(status.get("id"))
    raw = Raw(code=code)
    yield Scan(
        where="/parcel/status",
        raw=raw,
        meaning=_meaning(raw),
        time=_time(
            text(push.get("carrier_status_change_timestamp")) or text(push.get("timestamp")),
            received_at,
        ),
        description=text(status.get("message")),
    )


def _time(printed: str | None, received_at: datetime) -> PrintedTime | None:
    if printed is not None and not (printed.isascii() and printed.isdigit()):
        return None
    value = None if printed is None else int(printed[:20])
    return read_epoch(
        value, milliseconds=value is not None and value > SECONDS_MAX, received_at=received_at
    )


CARRIER: Final = Carrier(
    carrier_id="sendcloud",
    name="Sendcloud",
    number_fields=("parcel.tracking_number", "tracking_numbers.tracking_number"),
    normalizers={"1": normalize},
    formats=("Parcel webhook JSON", "v3 parcel event JSON", "v3 parcel tracking JSON"),
    reread=_meaning,
    authentication=(Hmac(header="Sendcloud-Signature"), ShipperChoice(default=())),
)
