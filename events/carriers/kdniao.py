"""KDNiao: pushes of tracks (JSON in the form field `RequestData`), and answers to its query.

It aggregates the carriers of China.

A trace has an action of its own in the extended service; else the newest, which is printed last,
takes the state of the shipment, and older ones add their text alone. Times are those of China.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("kdniao_codes.csv")
_meaning: Final = kit.by_code(CODES)
_WITHOUT_ACTION: Final = kit.Meaning(kit.Kind.INFO)

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%Y-%m-%d %H:%M[:%S]"), default_zone="Asia/Shanghai", prints_home=True
)

FIELD: Final = "RequestData"
_NUMBER: Final = "LogisticCode"
_TRACES: Final = "Traces"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, parcel in _parcels(
        kit.read_json(kit.form_fields(body).get(FIELD.encode(), body)), rejections
    ):
        found = kit.readings_of(
            _scans(parcel, where, received_at, rejections),
            kit.text(parcel.get(_NUMBER)),
            rejections,
        )
        yield from kit.carried_by(found, kit.text(parcel.get("ShipperCode")))


def _parcels(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is not dict or not {"EBusinessID", _NUMBER} & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but neither a push nor an answer of KDNiao"
        )
    if _NUMBER in body:
        yield "", body
        return
    parcels = kit.objects_at(body, "Data", "", rejections)
    yield from kit.recognised(
        ((f"/Data/{index}", parcel) for index, parcel in parcels), {_NUMBER}, rejections
    )


def _scans(
    parcel: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    state = kit.text(parcel.get("StateEx")) or kit.text(parcel.get("State"))
    traces = kit.objects_at(parcel, _TRACES, where, rejections)
    for index, trace in traces:
        newest = index == traces[-1][0]
        code = kit.text(trace.get("Action")) or (state if newest else None)
        raw = kit.Raw(code=code)
        yield kit.Scan(
            where=f"{where}/{_TRACES}/{index}",
            raw=raw,
            meaning=_meaning(raw) if code else _WITHOUT_ACTION,
            time=CLOCK.read(kit.text(trace.get("AcceptTime")), received_at=received_at),
            place=kit.place(facility=trace.get("Location")),
            description=kit.text(trace.get("AcceptStation")),
        )


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    return _meaning(raw) if raw.code else None


CARRIER: Final = kit.Carrier(
    carrier_id="kdniao",
    name="KDNiao",
    number_fields=(_NUMBER,),
    normalizers={"1": normalize},
    formats=("Track push JSON in a form", "Query answer JSON"),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
    ack=kit.Ack(body=b'{"Success":true,"Reason":""}'),
)
