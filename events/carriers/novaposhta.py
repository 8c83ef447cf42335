"""Nova Poshta (Ukraine): answers of `TrackingDocument.getStatusDocuments`. Each document prints its state alone, and since when.

A number that is not found (anymore) has a state of its own, and says nothing. Times are Ukrainian.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, objects, objects_at
from events.parsing.meanings import by_code, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("novaposhta_codes.csv")
_meaning: Final = by_code(CODES)

CLOCK: Final = Clock(
    formats=TimeFormats("%Y-%m-%d[ %H:%M:%S]", "%d-%m-%Y[ %H:%M:%S]", "%d.%m.%Y[ %H:%M:%S]"),
    default_zone="Europe/Kyiv",
    country="UA",
)

NOT_FOUND: Final = frozenset({"3", "80"})

_TIMES: Final = ("TrackingUpdateDate", "RecipientDateTime", "DateCreated")


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    for where, document in _documents(read_json(body), rejections):
        raw = Raw(code=text(document.get("StatusCode")))
        if raw.code in NOT_FOUND:
            rejections.note_nothing()
            continue
        printed = next((at for name in _TIMES if (at := text(document.get(name)))), None)
        scan = Scan(
            where=where,
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(printed, received_at=received_at),
            description=text(document.get("Status")),
        )
        found = readings_of(
            (scan,),
            text(document.get("Number")),
            rejections,
            service=text(document.get("ServiceType")),
        )
        yield from with_estimate(
            found, estimate(text(document.get("ScheduledDeliveryDate")), CLOCK.formats)
        )


def _documents(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is list:
        yield from ((f"/{index}", document) for index, document in objects(body, "", rejections))
    elif type(body) is dict and "StatusCode" in body:
        yield "", body
    elif type(body) is dict and {"data", "errors"} & body.keys():
        listed = objects_at(body, "data", "", rejections, required="errors" not in body)
        yield from ((f"/data/{index}", document) for index, document in listed)
    else:
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no status of Nova Poshta")


CARRIER: Final = Carrier(
    carrier_id="novaposhta",
    name="Nova Poshta",
    number_fields=("Number",),
    normalizers={"1": normalize},
    formats=("TrackingDocument JSON",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
