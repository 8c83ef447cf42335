"""Kuaidi100: pushes (JSON in the form field `param`), and answers. It aggregates China's carriers.

An event has a status of its own only where the subscription asked for it (`resultv2`); else the
newest takes the state of the shipment, and older events add their text alone. Times are those of
China; in the part of a destination abroad the zone is unknown.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("kuaidi100_codes.csv")
_meaning: Final = kit.by_code(CODES)
_WITHOUT_STATUS: Final = kit.Meaning(kit.Kind.INFO)

# Beijing's time, wherever in China: a place must not be looked up in other zones
CHINA: Final = kit.Clock(
    formats=kit.TimeFormats("%Y-%m-%d %H:%M[:%S]"), default_zone="Asia/Shanghai", prints_home=True
)
ABROAD: Final = kit.Clock(formats=CHINA.formats)

FIELD: Final = "param"
_RESULTS: Final = {"lastResult": CHINA, "destResult": ABROAD}
_ERROR_FIELDS: Final = frozenset({"returnCode", "result"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, parcel, clock in _parcels(
        kit.read_json(kit.form_fields(body).get(FIELD.encode(), body)), rejections
    ):
        found = kit.readings_of(
            _scans(parcel, where, clock, received_at, rejections),
            kit.text(parcel.get("nu")),
            rejections,
        )
        yield from kit.carried_by(found, kit.text(parcel.get("com")))


def _parcels(
    body: object, rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject, kit.Clock]]:
    if type(body) is dict and "nu" in body:
        yield "", body, CHINA
    elif type(body) is dict and _RESULTS.keys() & body.keys():
        for name, clock in _RESULTS.items():
            parcel = kit.object_at(
                body,
                name,
                "",
                rejections,
                required=name == "lastResult",
                but=_RESULTS.keys() - {name},
            )
            if parcel:
                yield f"/{name}", parcel, clock
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but neither a push nor an answer of Kuaidi100"
        )


def _scans(
    parcel: kit.JsonObject,
    where: str,
    clock: kit.Clock,
    received_at: datetime,
    rejections: kit.Rejections,
) -> Iterator[kit.Scan]:
    state = kit.text(parcel.get("state"))
    for index, event in kit.objects_at(parcel, "data", where, rejections):
        # the first is the newest: the state of the shipment is that event's
        code = kit.text(event.get("statusCode")) or (state if index == 0 else None)
        raw = kit.Raw(code=code)
        yield kit.Scan(
            where=f"{where}/data/{index}",
            raw=raw,
            meaning=_meaning(raw) if code else _WITHOUT_STATUS,
            time=clock.read(
                kit.text(event.get("ftime")) or kit.text(event.get("time")),
                received_at=received_at,
            ),
            place=kit.place(facility=event.get("areaName") or event.get("location")),
            description=kit.text(event.get("context")),
        )


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    return _meaning(raw) if raw.code else None


CARRIER: Final = kit.Carrier(
    carrier_id="kuaidi100",
    name="Kuaidi100",
    number_fields=("nu",),
    normalizers={"1": normalize},
    formats=("Subscription push JSON in a form", "Query answer JSON"),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
    ack=kit.Ack(body='{"result":true,"returnCode":"200","message":"成功"}'.encode()),
)
