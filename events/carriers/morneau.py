"""Groupe Morneau: the order tracking of its API, an order or a list of them.

The ordinal of a scan is its identity within the order. A status has a code and a text in two
languages. Times are local; a zone of the carrier's own names the place.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("morneau_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S][%f]]"),
    default_zone="America/Toronto",
    country="CA",
)

_ORDER: Final = "OrderTracking"
_ERROR_FIELDS: Final = frozenset({"Message", "message", "error", "errors", "Code"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, order in _orders(kit.read_json(body), rejections):
        yield from kit.readings_of(
            _scans(order, where, received_at, rejections), kit.text(order.get("BillId")), rejections
        )


def _orders(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is list:
        for index, member in kit.objects(body, "", rejections):
            yield from ((f"/{index}{where}", order) for where, order in _orders(member, rejections))
    elif type(body) is dict and _ORDER in body:
        yield f"/{_ORDER}", kit.object_at(body, _ORDER, "", rejections)
    elif type(body) is dict and "History" in body:
        yield "", body
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no order tracking of Morneau"
        )


def _scans(
    order: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, status in kit.objects_at(order, "History", where, rejections):
        where_at = kit.position_in_line(kit.text(status.get("Zone")), country="CA")
        code = kit.text(status.get("StatusCode"))
        raw = kit.Raw(code=code, reason=kit.text(status.get("StatusReasonCode")))
        yield kit.Scan(
            where=f"{where}/History/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(kit.text(status.get("DateTime")), where_at, received_at=received_at),
            place=where_at,
            description=kit.text(status.get("Status")) or kit.text(status.get("StatusDescription")),
            native_id=kit.text(status.get("Ordinal")),
            native_id_per_number=True,
        )


CARRIER: Final = kit.Carrier(
    carrier_id="morneau",
    name="Groupe Morneau",
    number_fields=("BillId",),
    normalizers={"1": normalize},
    formats=("Order tracking JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
