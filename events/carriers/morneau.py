"""Groupe Morneau: the order tracking of its API, one order or a list of them.

The ordinal of a scan is its identity within the order. A status has a code and a text in two languages. Times are local; a zone of
the carrier's own names the place.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lines import position_in_line
from events.parsing.lists import JsonObject, child, objects, objects_at
from events.parsing.meanings import by_code, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("morneau_codes.csv")
_meaning: Final = by_code(CODES)

CLOCK: Final = Clock(
    formats=TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S][%f]]"),
    default_zone="America/Toronto",
    country="CA",
)

_ORDER: Final = "OrderTracking"
_ERROR_FIELDS: Final = frozenset({"Message", "message", "error", "errors", "Code"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    for where, order in _orders(read_json(body), rejections):
        yield from readings_of(
            _scans(order, where, received_at, rejections), text(order.get("BillId")), rejections
        )


def _orders(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is list:
        for index, member in objects(body, "", rejections):
            yield from ((f"/{index}{where}", order) for where, order in _orders(member, rejections))
    elif type(body) is dict and _ORDER in body:
        yield f"/{_ORDER}", child(body, _ORDER)
    elif type(body) is dict and "History" in body:
        yield "", body
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no order tracking of Morneau")


def _scans(
    order: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, status in objects_at(order, "History", where, rejections):
        where_at = position_in_line(text(status.get("Zone")), country="CA")
        code = text(status.get("StatusCode"))
        raw = Raw(code=code, reason=text(status.get("StatusReasonCode")))
        yield Scan(
            where=f"{where}/History/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(text(status.get("DateTime")), where_at, received_at=received_at),
            place=where_at,
            description=text(status.get("Status")) or text(status.get("StatusDescription")),
            native_id=text(status.get("Ordinal")),
            native_id_per_number=True,
        )


CARRIER: Final = Carrier(
    carrier_id="morneau",
    name="Groupe Morneau",
    number_fields=("BillId",),
    normalizers={"1": normalize},
    formats=("Order tracking JSON",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
