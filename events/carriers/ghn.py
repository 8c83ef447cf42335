"""GHN (Giao Hang Nhanh): its callback of an order's status.

Callbacks of another `Type` (a weight, a fee, money) repeat the order's present status, with a time
of their own: they are no scans.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("ghn_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="Asia/Ho_Chi_Minh", country="VN")

STATUS_TYPE: Final = "switch_status"
_OTHER_TYPES: Final = frozenset({"create", "update_weight", "update_cod", "update_fee"})
_KNOWN: Final = frozenset({"OrderCode", "Status"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    push = kit.read_json(body)
    if type(push) is not dict or not push.keys() >= _KNOWN:
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "JSON, but no callback of GHN")
    kind = kit.text(push.get("Type")) or STATUS_TYPE
    if kind in _OTHER_TYPES:
        rejections.note_nothing()
    elif kind != STATUS_TYPE:
        rejections.add("/Type", "a callback of no known type")
    else:
        raw = kit.Raw(code=kit.text(push.get("Status")), reason=kit.text(push.get("ReasonCode")))
        scan = kit.Scan(
            where="",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(kit.text(push.get("Time")), received_at=received_at),
            place=kit.place(facility=push.get("Warehouse")),
            description=kit.text(push.get("Reason")) or kit.text(push.get("Description")),
        )
        yield from kit.reading_of(scan, kit.text(push.get("OrderCode")), rejections)


CARRIER: Final = kit.Carrier(
    carrier_id="ghn",
    name="GHN",
    number_fields=("OrderCode",),
    normalizers={"1": normalize},
    formats=("Order status callback JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
