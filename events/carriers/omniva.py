"""Omniva (Estonia, Latvia, Lithuania): the events of a customer's parcels that its XML interface lists, each with its parcel's number.

Times without an offset are Estonian. A place is the office or the machine that printed the event.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.formats import ISO
from events.parsing.lists import elements_at
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.times import Clock
from events.parsing.xml import answers, read_xml, texts

CODES: Final = meanings("omniva_codes.csv")
_meaning: Final = by_code(CODES)

CLOCK: Final = Clock(formats=ISO, default_zone="Europe/Tallinn")

_EVENT: Final = "event"


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    for listed in answers(read_xml(body)):
        if _EVENT not in str(listed.tag).lower() and not any(
            "eventCode" in texts(event) for event in listed.iterfind(_EVENT)
        ):
            raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "XML, but no events of Omniva")
        for number, event in elements_at(listed, _EVENT, "", rejections):
            fields = texts(event)
            raw = Raw(code=fields.get("eventCode"))
            scan = Scan(
                where=f"event[{number}]",
                raw=raw,
                meaning=_meaning(raw),
                time=CLOCK.read(fields.get("eventDate"), received_at=received_at),
                place=place(facility=fields.get("eventSource")),
            )
            yield from readings_of((scan,), fields.get("packetCode"), rejections)


CARRIER: Final = Carrier(
    carrier_id="omniva",
    name="Omniva",
    number_fields=("packetCode",),
    normalizers={"1": normalize},
    formats=("Events XML",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
