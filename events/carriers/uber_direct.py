"""Uber Direct: its webhooks of a delivery's status, and deliveries with their newest status.

The status of a return delivery (`event.delivery_return`) is that of the way back to the store.
Webhooks about the courier's position, refunds and purchases have no scans. Times are UTC.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# (kind, status): the kind is empty for the usual one.
CODES: Final = kit.meanings("uber_direct_codes.csv")

CLOCK: Final = kit.Clock(formats=kit.ISO)

STATUS_KIND: Final = "event.delivery_status"
RETURN_KIND: Final = "event.delivery_return"
_DELIVERY: Final = "delivery"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, push in _pushes(kit.read_json(body), rejections):
        kind, data = kit.text(push.get("kind")), kit.child(push, "data")
        if kind == _DELIVERY:
            kind, data = STATUS_KIND, push
        if kind not in {STATUS_KIND, RETURN_KIND}:
            rejections.note_nothing()
            continue
        raw = kit.Raw(
            type=kind if kind == RETURN_KIND else None,
            code=kit.text(push.get("status")) or kit.text(data.get("status")),
        )
        scan = kit.Scan(
            where=where,
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(_time(push), received_at=received_at),
            native_id=None if data is push else kit.text(push.get("id")),
        )
        found = kit.readings_of(
            (scan,), kit.text(push.get("delivery_id")) or kit.text(data.get("id")), rejections
        )
        yield from kit.with_estimate(
            found, kit.estimate(kit.text(data.get("dropoff_eta")), kit.ISO)
        )


def _time(push: kit.JsonObject) -> str | None:
    """Return when an event happened; a delivery of an answer was created long
    before it got its status.
    """
    return kit.text(push.get("updated" if push.get("kind") == _DELIVERY else "created"))


def _pushes(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is dict and type(body.get("data")) is list:
        for index, delivery in kit.objects_at(body, "data", "", rejections):
            if delivery.get("kind", _DELIVERY) == _DELIVERY:
                yield f"/data/{index}", {**delivery, "kind": _DELIVERY}
            else:
                rejections.add(f"/data/{index}", "no delivery")
        return
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{index}", push) for index, push in kit.objects(body, "", rejections)]
    )
    kinds = ("event.", "error", _DELIVERY)
    if not any(str(push.get("kind")).startswith(kinds) for _, push in found):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no webhook of Uber Direct"
        )
    yield from found


def _meaning(raw: kit.Raw) -> kit.Meaning:
    return CODES.get((raw.type or "", raw.code or ""), kit.UNMAPPED)


CARRIER: Final = kit.Carrier(
    carrier_id="uber_direct",
    name="Uber Direct",
    number_fields=("delivery_id", "data.id", ".id"),
    normalizers={"1": normalize},
    formats=("Delivery webhook", "Delivery JSON", "List of deliveries JSON"),
    reread=_meaning,
    authentication=(
        kit.Hmac(header="x-uber-signature"),
        kit.Hmac(header="x-postmates-signature"),
        kit.ShipperChoice(default=()),
    ),
)
