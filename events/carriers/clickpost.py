"""ClickPost: its status webhook, one scan, and its answers.

They list updated orders, or the scans of waybills. A return order without a waybill belongs to the
forward waybill and does not move it.

The code is ClickPost's own; the courier's is retained as well. Times are Indian, whatever their `Z`
claims.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("clickpost_codes.csv")
_meaning: Final = kit.by_code(CODES)
CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S[%f]]]", "%Y-%m-%dT%H:%M[%z]"
    ),
    default_zone="Asia/Kolkata",
    country="IN",
    # Indian times, whatever their `Z` claims
    trust_offset=False,
)
# List of the answer about updated orders.
_ORDERS: Final = "result"
_KNOWN: Final = frozenset({"waybill", "clickpost_status_code"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, push in _pushes(kit.read_json(body), rejections):
        additional = kit.child(push, "additional")
        code, courier = kit.text(push.get("clickpost_status_code")), kit.text(push.get("status"))
        raw = kit.Raw(code=code, further=(courier,) if courier else ())
        found = kit.reading_of(
            kit.Scan(
                where=where,
                raw=raw,
                meaning=_meaning(raw),
                time=CLOCK.read(kit.text(push.get("timestamp")), received_at=received_at),
                place=kit.place(city=push.get("location")),
                description=kit.text(push.get("remark"))
                or kit.text(push.get("clickpost_status_description")),
            ),
            # a return order without a waybill belongs to the forward one, and does not move it
            kit.text(push.get("waybill")) or kit.text(additional.get("forward_awb")),
            rejections,
        )
        expected = kit.text(additional.get("courier_partner_edd"))
        yield from kit.with_estimate(found, kit.estimate(expected, CLOCK.formats))


def _pushes(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is dict and type(body.get(_ORDERS)) is dict:
        yield from _tracked(body[_ORDERS], rejections)
        return
    if type(body) is dict and _ORDERS in body:
        orders = kit.objects_at(body, _ORDERS, "", rejections)
        yield from kit.recognised(
            ((f"/{_ORDERS}/{at}", order) for at, order in orders), _KNOWN, rejections
        )
        return
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{at}", push) for at, push in kit.objects(body, "", rejections)]
    )
    if not any(_KNOWN & push.keys() for _, push in found):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no status of ClickPost"
        )
    yield from found


def _tracked(
    result: kit.JsonObject, rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject]]:
    """Yield the scans of an answer to track-order, which names its members by waybill."""
    for waybill, tracking in result.items():
        where = f"/{_ORDERS}/{waybill}"
        if type(tracking) is not dict:
            rejections.add(where, "not an object")
        elif tracking.get("valid") is False:
            rejections.note_nothing()
        else:
            for at, scan in kit.objects_at(tracking, "scans", where, rejections):
                # the waybill is the name of the member, and not in the scan
                yield f"{where}/scans/{at}", {**scan, "waybill": waybill}


CARRIER: Final = kit.Carrier(
    carrier_id="clickpost",
    name="ClickPost",
    number_fields=("waybill", "additional.forward_awb", "result.{}"),
    normalizers={"1": normalize},
    formats=("Status webhook", "Updated orders JSON", "Tracking answer JSON"),
    reread=_meaning,
    authentication=(kit.SharedHeader(header="webhook_key"), kit.ShipperChoice(default=())),
)
