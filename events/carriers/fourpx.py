"""4PX: answers to its tracking query (tr.order.tracking.get).

A time has its zone in a field of its own.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("fourpx_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(formats=kit.TimeFormats("%Y-%m-%d %H:%M:%S"))

_EVENTS: Final = "trackingList"
_NUMBER: Final = "deliveryOrderNo"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, parcel in _parcels(kit.read_json(body), rejections):
        yield from kit.readings_of(
            _scans(parcel, where, received_at, rejections),
            kit.text(parcel.get(_NUMBER)),
            rejections,
        )


def _parcels(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is dict and _EVENTS in body:
        yield "", body
    elif type(body) is dict and "result" in body and {"data", "errors"} & body.keys():
        found = kit.objects_at(body, "data", "", rejections)
        yield from kit.recognised(
            ((f"/data/{index}", parcel) for index, parcel in found), {_EVENTS}, rejections
        )
    else:
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of 4PX")


def _scans(
    parcel: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(parcel, _EVENTS, where, rejections):
        raw = kit.Raw(code=kit.text(event.get("businessLinkCode")))
        at = kit.place(
            city=event.get("city"),
            country=event.get("country"),
            facility=event.get("occurLocation"),
        )
        yield kit.Scan(
            where=f"{where}/{_EVENTS}/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read_with_offset(
                kit.text(event.get("occurDatetime")),
                kit.text(event.get("timeZone")),
                at,
                received_at=received_at,
            ),
            place=at,
            description=kit.text(event.get("trackingContent")),
        )


CARRIER: Final = kit.Carrier(
    carrier_id="fourpx",
    name="4PX",
    number_fields=(_NUMBER,),
    normalizers={"1": normalize},
    formats=("Tracking query JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
