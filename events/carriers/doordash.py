"""DoorDash Drive: its webhook, one event of a delivery. Several deliveries of one courier (`DELIVERY_BATCHED`) are no step of one.

The number is the sender's own id of the delivery. `created_at` is UTC. Newer names are in lower case.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import ISO
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, objects
from events.parsing.meanings import UNMAPPED, Meaning, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("doordash_codes.csv")
"""Names of events, in capitals."""

CLOCK: Final = Clock(formats=ISO)

_NAMES: Final = ("event_name", "event_type")


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the event of one webhook."""
    for where, push in _pushes(read_json(body), rejections):
        code = next((name for field in _NAMES if (name := text(push.get(field)))), None)
        raw = Raw(code=code, reason=text(push.get("cancellation_reason")))
        scan = Scan(
            where=where,
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(text(push.get("created_at")), received_at=received_at),
            description=text(push.get("cancellation_reason_message")),
        )
        found = readings_of((scan,), text(push.get("external_delivery_id")), rejections)
        yield from with_estimate(found, estimate(text(push.get("dropoff_time_estimated")), ISO))


def _pushes(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{index}", push) for index, push in objects(body, "", rejections)]
    )
    if not any({*_NAMES} & push.keys() for _, push in found):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no event of DoorDash Drive")
    yield from found


def _meaning(raw: Raw) -> Meaning:
    return CODES.get(((raw.code or "").upper(),), UNMAPPED)


CARRIER: Final = Carrier(
    carrier_id="doordash",
    name="DoorDash Drive",
    number_fields=("external_delivery_id",),
    normalizers={"1": normalize},
    formats=("Drive webhook",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
