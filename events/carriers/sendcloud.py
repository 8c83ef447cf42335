"""Sendcloud: webhooks that state the present status of one parcel.

There is no history, no place and no scan time: the status holds since the push, so that is its time. Missing values are printed as
`false`. Parcels that have no tracking number yet, and webhooks that are not about a parcel's status, exist.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, Hmac, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Normalized, PrintedTime, Raw
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child
from events.parsing.meanings import by_code, meanings
from events.parsing.rejections import Rejections
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import read_epoch

CODES: Final = meanings("sendcloud_codes.csv")
_meaning: Final = by_code(CODES)

SECONDS_MAX: Final = 10**11
"""An epoch beyond it is in milliseconds."""

_ENVELOPE: Final = frozenset({"action", "parcel", "timestamp", "error"})


def normalize(body: bytes, received_at: datetime) -> Normalized:
    """The event of one push."""
    push = read_json(body)
    if push in ({}, []):
        return Normalized()
    if type(push) is not dict or not _ENVELOPE & push.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no webhook of Sendcloud")
    rejections = Rejections()
    parcel = child(push, "parcel")
    readings = readings_of(_scans(push, parcel, received_at), text(parcel.get("tracking_number")), rejections)
    return Normalized(readings=tuple(readings), rejections=tuple(rejections))


def _scans(push: JsonObject, parcel: JsonObject, received_at: datetime) -> Iterator[Scan]:
    status = child(parcel, "status")
    if not status:
        return
    code = text(status.get("id"))
    raw = Raw(code=code)
    yield Scan(
        where="/parcel/status",
        raw=raw,
        meaning=_meaning(raw),
        time=_time(text(push.get("timestamp")), received_at),
        description=text(status.get("message")),
    )


def _time(printed: str | None, received_at: datetime) -> PrintedTime | None:
    if printed is not None and not (printed.isascii() and printed.isdigit()):
        return None
    value = None if printed is None else int(printed[:20])
    return read_epoch(value, milliseconds=value is not None and value > SECONDS_MAX, received_at=received_at)


CARRIER: Final = Carrier(
    carrier_id="sendcloud",
    name="Sendcloud",
    number_fields=("parcel.tracking_number",),
    normalizers={"1": normalize},
    stable="1",
    formats=("Parcel webhook JSON",),
    reread=_meaning,
    authentication=(Hmac(header="Sendcloud-Signature"), ShipperChoice(default=())),
)
