"""Posti (Finland): answers of its Nextshipping API about a shipment.

Its status codes are those of Posti's IFTSTA. Times are Finnish.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("posti_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%Y-%m-%d[ %H:%M:%S]"), default_zone="Europe/Helsinki"
)

_FIELDS: Final = frozenset({"status_code", "event_timestamp"})
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, event in _events(kit.read_json(body), rejections):
        raw = kit.Raw(code=kit.text(event.get("status_code")))
        scan = kit.Scan(
            where=where,
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(kit.text(event.get("event_timestamp")), received_at=received_at),
            place=kit.place(city=event.get("post_office"), postal_code=event.get("postcode")),
            signed_by=event.get("receiver_name"),
        )
        yield from kit.readings_of((scan,), kit.text(event.get("tracking_code")), rejections)


def _events(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{index}", event) for index, event in kit.objects(body, "", rejections)]
    )
    if any(_FIELDS & event.keys() for _, event in found):
        yield from found
    elif not any(_ERROR_FIELDS & event.keys() for _, event in found):
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "JSON, but no events of Posti")


CARRIER: Final = kit.Carrier(
    carrier_id="posti",
    name="Posti",
    number_fields=("tracking_code",),
    normalizers={"1": normalize},
    formats=("Nextshipping status JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
