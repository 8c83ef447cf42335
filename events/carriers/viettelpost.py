"""Viettel Post: its webhook of a status.

`LOCALION_CURRENTLY` is its own spelling, which later webhooks correct. A flag marks a return to the
sender.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# (ORDER_STATUS, REASON_CODE): the reason is empty where none, or any, is printed.
CODES: Final = kit.meanings("viettelpost_codes.csv")

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%-d/%-m/%Y %-H:%M[:%S]"),
    default_zone="Asia/Ho_Chi_Minh",
    country="VN",
)

RETURNING: Final = "IS_RETURNING"
_NUMBER: Final = "ORDER_NUMBER"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    push = kit.read_json(body)
    order = kit.child(push, "DATA") if type(push) is dict else {}
    if not order.keys() >= {_NUMBER, "ORDER_STATUS"}:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no webhook of Viettel Post"
        )
    raw = kit.Raw(
        code=kit.text(order.get("ORDER_STATUS")),
        reason=kit.text(order.get("REASON_CODE")),
        further=(RETURNING,) if order.get(RETURNING) is True else (),
    )
    scan = kit.Scan(
        where="/DATA",
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(kit.text(order.get("ORDER_STATUSDATE")), received_at=received_at),
        place=kit.place(
            facility=order.get("LOCATION_CURRENTLY") or order.get("LOCALION_CURRENTLY")
        ),
        description=kit.text(order.get("STATUS_NAME")),
    )
    yield from kit.reading_of(
        scan, kit.text(order.get(_NUMBER)), rejections, service=kit.text(order.get("ORDER_SERVICE"))
    )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    code = raw.code or ""
    known = CODES.get((code, raw.reason or "")) or CODES.get((code, ""), kit.UNMAPPED)
    return kit.on_the_way_back(known) if RETURNING in raw.further else known


CARRIER: Final = kit.Carrier(
    carrier_id="viettelpost",
    name="Viettel Post",
    number_fields=("DATA.ORDER_NUMBER",),
    normalizers={"1": normalize},
    formats=("Webhook JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
