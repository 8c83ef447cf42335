"""Roadie: its shipment object, by itself or in a list; every push repeats the whole history.

Events have a name and a UTC time; a place is a pair of coordinates, which no parcel is found by, and is left out.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import with_signer
from events.parsing.formats import ISO
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, members, objects_at
from events.parsing.meanings import by_code, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import signer, text
from events.parsing.times import Clock

CODES: Final = meanings("roadie_codes.csv")
_meaning: Final = by_code(CODES)

CLOCK: Final = Clock(formats=ISO)

_WRAPPERS: Final = ("shipments", "shipment", "data")
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message"})
_UNKNOWN: Final = "JSON, but no shipment of Roadie"


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    for where, shipment in _shipments(read_json(body), "", rejections):
        found = readings_of(
            _scans(shipment, where, received_at, rejections),
            text(shipment.get("tracking_number")),
            rejections,
        )
        yield from with_signer(found, signer(shipment.get("signatory_name")))


def _shipments(
    body: object, where: str, rejections: Rejections
) -> Iterator[tuple[str, JsonObject]]:
    for at, member in members(body, where, rejections, unknown=_UNKNOWN):
        wrapper = next((name for name in _WRAPPERS if type(member.get(name)) in (dict, list)), None)
        if "tracking_number" in member:
            yield at, member
        elif wrapper is not None:
            yield from _shipments(member[wrapper], f"{at}/{wrapper}", rejections)
        elif not _ERROR_FIELDS & member.keys():
            raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, _UNKNOWN)


def _scans(
    shipment: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, event in objects_at(shipment, "events", where, rejections):
        code = text(event.get("name"))
        raw = Raw(code=code)
        yield Scan(
            where=f"{where}/events/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(text(event.get("occurred_at")), received_at=received_at),
        )


CARRIER: Final = Carrier(
    carrier_id="roadie",
    name="Roadie",
    number_fields=("tracking_number",),
    normalizers={"1": normalize},
    formats=("Shipment JSON",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
