"""DoorDash Drive: its webhook, an event of a delivery.

`DELIVERY_BATCHED` (several deliveries of a courier) is not a step of a delivery. The number is the
sender's own id of the delivery. `created_at` is UTC. Newer names are in lower case.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# Names of events, in capitals.
CODES: Final = kit.meanings("doordash_codes.csv")

CLOCK: Final = kit.Clock(formats=kit.ISO)

_NAMES: Final = ("event_name", "event_type")


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, push in _pushes(kit.read_json(body), rejections):
        code = next((name for field in _NAMES if (name := kit.text(push.get(field)))), None)
        raw = kit.Raw(code=code, reason=kit.text(push.get("cancellation_reason")))
        scan = kit.Scan(
            where=where,
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(kit.text(push.get("created_at")), received_at=received_at),
            description=kit.text(push.get("cancellation_reason_message")),
        )
        found = kit.readings_of((scan,), kit.text(push.get("external_delivery_id")), rejections)
        yield from kit.with_estimate(
            found, kit.estimate(kit.text(push.get("dropoff_time_estimated")), kit.ISO)
        )


def _pushes(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{index}", push) for index, push in kit.objects(body, "", rejections)]
    )
    if not any({*_NAMES} & push.keys() for _, push in found):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no event of DoorDash Drive"
        )
    yield from found


def _meaning(raw: kit.Raw) -> kit.Meaning:
    return CODES.get(((raw.code or "").upper(),), kit.UNMAPPED)


CARRIER: Final = kit.Carrier(
    carrier_id="doordash",
    name="DoorDash Drive",
    number_fields=("external_delivery_id",),
    normalizers={"1": normalize},
    formats=("Drive webhook",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
