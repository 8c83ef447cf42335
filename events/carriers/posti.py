"""Posti (Finland): answers of its Nextshipping API about a shipment, whose status codes are those of Posti's IFTSTA.

Times are Finnish.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, objects
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("posti_codes.csv")
_meaning: Final = by_code(CODES)

CLOCK: Final = Clock(formats=TimeFormats("%Y-%m-%d[ %H:%M:%S]"), default_zone="Europe/Helsinki")

_FIELDS: Final = frozenset({"status_code", "event_timestamp"})
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    for where, event in _events(read_json(body), rejections):
        raw = Raw(code=text(event.get("status_code")))
        scan = Scan(
            where=where,
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(text(event.get("event_timestamp")), received_at=received_at),
            place=place(city=event.get("post_office"), postal_code=event.get("postcode")),
            signed_by=event.get("receiver_name"),
        )
        yield from readings_of((scan,), text(event.get("tracking_code")), rejections)


def _events(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{index}", event) for index, event in objects(body, "", rejections)]
    )
    if any(_FIELDS & event.keys() for _, event in found):
        yield from found
    elif not any(_ERROR_FIELDS & event.keys() for _, event in found):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no events of Posti")


CARRIER: Final = Carrier(
    carrier_id="posti",
    name="Posti",
    number_fields=("tracking_code",),
    normalizers={"1": normalize},
    formats=("Nextshipping status JSON",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
