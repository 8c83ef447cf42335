"""Poste Italiane: answers of the tracking of Poste Delivery.

No public document lists the statuses: an unknown status is read by the phase that is printed with
it.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# (level, code): of a `status`, or of the `phase` around it in lower case.
CODES: Final = kit.meanings("poste_italiane_codes.csv")

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%Y-%m-%d %H:%M[:%S]"), default_zone="Europe/Rome", country="IT"
)

_SHIPMENTS: Final = "shipment"
_EVENTS: Final = "tracking"
_ANSWER: Final = frozenset({"outcome", "result", _SHIPMENTS})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    answer = kit.read_json(body)
    where = "/return" if type(answer) is dict and "return" in answer else ""
    answer = kit.child(answer, "return") if where else answer
    if type(answer) is not dict or not _ANSWER & answer.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of Poste Italiane"
        )
    found = kit.objects_at(answer, _SHIPMENTS, where, rejections)
    for pointer, shipment in kit.recognised(
        ((f"{where}/{_SHIPMENTS}/{index}", shipment) for index, shipment in found),
        {_EVENTS},
        rejections,
    ):
        yield from kit.readings_of(
            _scans(shipment, pointer, received_at, rejections),
            kit.text(shipment.get("waybillNumber")),
            rejections,
            service=kit.text(shipment.get("product")),
        )


def _scans(
    shipment: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(shipment, _EVENTS, where, rejections):
        phase = kit.text(event.get("phase"))
        raw = kit.Raw(code=kit.text(event.get("status")), further=(phase,) if phase else ())
        yield kit.Scan(
            where=f"{where}/{_EVENTS}/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(kit.text(event.get("data")), received_at=received_at),
            place=kit.place(facility=event.get("officeDescription")),
            description=kit.text(event.get("StatusDescription")),
        )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    phase = next(iter(raw.further), "")
    return kit.finest(
        (raw.code, CODES.get(("status", raw.code or ""))),
        (phase, CODES.get(("phase", phase.lower()))),
    )


CARRIER: Final = kit.Carrier(
    carrier_id="poste_italiane",
    name="Poste Italiane",
    number_fields=("waybillNumber",),
    normalizers={"1": normalize},
    formats=("Tracking JSON",),
    reread=_meaning,
    texts=kit.texts_of(CODES),
    authentication=(kit.ShipperChoice(),),
)
