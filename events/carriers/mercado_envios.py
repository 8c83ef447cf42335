"""Mercado Envios: the shipment of Mercado Libre's API, with the history of its
statuses and substatuses.

Its webhook holds no status, only where to fetch the shipment. A substatus that is not known
is read by its status.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# (status, substatus): the substatus is empty where none, or any, is printed.
CODES: Final = kit.meanings("mercado_envios_codes.csv")

CLOCK: Final = kit.Clock(formats=kit.ISO)

_HISTORY: Final = "substatus_history"
_NUMBER: Final = "tracking_number"
_SHIPMENT: Final = frozenset({"status", "substatus"})
_NOTICE: Final = frozenset({"resource", "topic"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    shipment = kit.read_json(body)
    if type(shipment) is dict and shipment.keys() >= _NOTICE:
        rejections.add("/resource", "a webhook without the shipment: fetch it and send that")
        return
    if type(shipment) is not dict or not (
        shipment.keys() >= _SHIPMENT or {"error", "message"} & shipment.keys()
    ):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no shipment of Mercado Envios"
        )
    if not shipment.keys() >= _SHIPMENT:
        return
    number = kit.text(shipment.get(_NUMBER)) or kit.text(shipment.get("id"))
    yield from kit.readings_of(_scans(shipment, received_at, rejections), number, rejections)


def _scans(
    shipment: kit.JsonObject, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    steps = kit.objects_at(
        shipment, _HISTORY, "", rejections, required=False, but=frozenset({"shipping_items"})
    )
    found = [(f"/{_HISTORY}/{index}", step) for index, step in steps]
    current = {name: shipment.get(name) for name in _SHIPMENT}
    if not any({name: step.get(name) for name in _SHIPMENT} == current for _, step in found):
        found.append(("/status", {**current, "date": shipment.get("last_updated")}))
    for where, step in found:
        raw = kit.Raw(type=kit.text(step.get("status")), code=kit.text(step.get("substatus")))
        if raw == kit.Raw():
            continue
        yield kit.Scan(
            where=where,
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(kit.text(step.get("date")), received_at=received_at),
        )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    status = raw.type or ""
    return kit.finest(
        (raw.code, CODES.get((status, raw.code or ""))), (status, CODES.get((status, "")))
    )


CARRIER: Final = kit.Carrier(
    carrier_id="mercado_envios",
    name="Mercado Envios",
    number_fields=("tracking_number|id",),
    normalizers={"1": normalize},
    formats=("Shipment JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
