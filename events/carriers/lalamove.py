"""Lalamove: its webhooks, version 3; only that of an order's status counts. Times are UTC.

Its signature is inside the body that it signs, and covers the path of the shipper's URL; the URL's
own secret authenticates it here.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("lalamove_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(formats=kit.ISO)

STATUS_TYPE: Final = "ORDER_STATUS_CHANGED"
_OTHER_TYPES: Final = frozenset(
    {
        "DRIVER_ASSIGNED",
        "ORDER_AMOUNT_CHANGED",
        "ORDER_EDITED",
        "ORDER_REPLACED",
        "WALLET_BALANCE_CHANGED",
    }
)


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    push = kit.read_json(body)
    if type(push) is not dict or not push.keys() >= {"eventType", "data"}:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no webhook of Lalamove"
        )
    kind = kit.text(push.get("eventType"))
    if kind in _OTHER_TYPES:
        rejections.note_nothing()
    elif kind != STATUS_TYPE:
        rejections.add("/eventType", "a webhook of no known type")
    else:
        data = kit.object_at(push, "data", "", rejections)
        order = kit.object_at(data, "order", "/data", rejections)
        raw = kit.Raw(code=kit.text(order.get("status")))
        scan = kit.Scan(
            where="/data/order",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(kit.text(data.get("updatedAt")), received_at=received_at),
            native_id=kit.text(push.get("eventId")),
        )
        yield from kit.reading_of(scan, kit.text(order.get("orderId")), rejections)


CARRIER: Final = kit.Carrier(
    carrier_id="lalamove",
    name="Lalamove",
    number_fields=("order.orderId",),
    normalizers={"1": normalize},
    formats=("Webhook v3 JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
