"""Uber Direct: its webhooks of a delivery's status, one status each.

The status of a return delivery (`event.delivery_return`) is that of the way back to the store. Where a courier is, what is refunded and
what is bought are webhooks of their own that say nothing about the parcel. Times are UTC.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, Hmac, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import ISO
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child, objects
from events.parsing.meanings import UNMAPPED, Meaning, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("uber_direct_codes.csv")
"""(kind, status): the kind is empty where it is the usual one."""

CLOCK: Final = Clock(formats=ISO)

STATUS_KIND: Final = "event.delivery_status"
RETURN_KIND: Final = "event.delivery_return"


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the event of one webhook."""
    for where, push in _pushes(read_json(body), rejections):
        kind, data = text(push.get("kind")), child(push, "data")
        if kind not in {STATUS_KIND, RETURN_KIND}:
            rejections.note_nothing()
            continue
        raw = Raw(
            type=kind if kind == RETURN_KIND else None,
            code=text(push.get("status")) or text(data.get("status")),
        )
        scan = Scan(
            where=where,
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(text(push.get("created")), received_at=received_at),
            native_id=text(push.get("id")),
        )
        found = readings_of(
            (scan,), text(push.get("delivery_id")) or text(data.get("id")), rejections
        )
        yield from with_estimate(found, estimate(text(data.get("dropoff_eta")), ISO))


def _pushes(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{index}", push) for index, push in objects(body, "", rejections)]
    )
    if not any(str(push.get("kind")).startswith(("event.", "error")) for _, push in found):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no webhook of Uber Direct")
    yield from found


def _meaning(raw: Raw) -> Meaning:
    return CODES.get((raw.type or "", raw.code or ""), UNMAPPED)


CARRIER: Final = Carrier(
    carrier_id="uber_direct",
    name="Uber Direct",
    number_fields=("delivery_id", "data.id"),
    normalizers={"1": normalize},
    formats=("Delivery webhook",),
    reread=_meaning,
    authentication=(
        Hmac(header="x-uber-signature"),
        Hmac(header="x-postmates-signature"),
        ShipperChoice(default=()),
    ),
)
