"""Omniva (Estonia, Latvia, Lithuania): the events of a customer's parcels that its XML interface
lists, each with its parcel's number.

Times without an offset are Estonian. A place is the office or the machine that printed the event.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("omniva_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="Europe/Tallinn")

_EVENT: Final = "event"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for listed in kit.answers(kit.read_xml(body)):
        if _EVENT not in str(listed.tag).lower() and not any(
            "eventCode" in kit.texts(event) for event in listed.iterfind(_EVENT)
        ):
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "XML, but no events of Omniva"
            )
        for number, event in kit.elements_at(listed, _EVENT, "", rejections):
            fields = kit.texts(event)
            raw = kit.Raw(code=fields.get("eventCode"))
            scan = kit.Scan(
                where=f"event[{number}]",
                raw=raw,
                meaning=_meaning(raw),
                time=CLOCK.read(fields.get("eventDate"), received_at=received_at),
                place=kit.place(facility=fields.get("eventSource")),
            )
            yield from kit.readings_of((scan,), fields.get("packetCode"), rejections)


CARRIER: Final = kit.Carrier(
    carrier_id="omniva",
    name="Omniva",
    number_fields=("packetCode",),
    normalizers={"1": normalize},
    formats=("Events XML",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
