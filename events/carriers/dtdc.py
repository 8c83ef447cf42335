"""DTDC: tracking answers (`trackDetails`) and pushes (`shipmentStatus`). Dates are DDMMYYYY, times HHMM, both Indian."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("dtdc_codes.csv")
_meaning: Final = kit.by_code(CODES)
CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%d%m%Y[ %H%M[%S]]",
        "%d%m%Y %H:%M[:%S]",
        "%-d/%-m/%Y[ %H:%M[:%S]]",
        "%-d-%-m-%Y[ %H:%M[:%S]]",
    ),
    default_zone="Asia/Kolkata",
    country="IN",
)
_LISTS: Final = ("trackDetails", "shipmentStatus")
_KNOWN_LISTS: Final = frozenset(_LISTS)
_HEADERS: Final = ("trackHeader", "shipment")


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Yield the events of one push or answer."""
    for where, answer in _answers(kit.read_json(body), rejections):
        number = next(
            (
                found
                for name in _HEADERS
                if (found := kit.text(kit.child(answer, name).get("strShipmentNo")))
            ),
            None,
        )
        service = next(
            (
                found
                for name in _HEADERS
                if (found := kit.text(kit.child(answer, name).get("strCNProduct")))
            ),
            None,
        )
        for name in _LISTS:
            pointer = f"{where}/{name}"
            for index, event in kit.objects_at(
                answer,
                name,
                where,
                rejections,
                required=not answer.keys() & _KNOWN_LISTS,
                but=_KNOWN_LISTS,
            ):
                yield from _reading(
                    event, number, f"{pointer}/{index}", received_at, rejections, service=service
                )


def _answers(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{at}", answer) for at, answer in kit.objects(body, "", rejections)]
    )
    if not any(
        {*_LISTS, *_HEADERS, "errorDetails", "statusFlag"} & answer.keys() for _, answer in found
    ):
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of DTDC")
    yield from found


def _reading(
    event: kit.JsonObject,
    number: str | None,
    where: str,
    received_at: datetime,
    rejections: kit.Rejections,
    *,
    service: str | None,
) -> tuple[kit.Reading, ...]:
    """Read an event; a push prints the code where an answer prints its words."""
    pushed = kit.text(event.get("strActionDesc"))
    code = kit.text(event.get("strCode")) or (kit.text(event.get("strAction")) if pushed else None)
    date, time, manifest = (
        kit.text(event.get(name)) for name in ("strActionDate", "strActionTime", "strManifestNo")
    )
    raw = kit.Raw(code=code, further=(manifest,) if manifest else ())
    return kit.reading_of(
        kit.Scan(
            where=where,
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(f"{date} {time}" if date and time else date, received_at=received_at),
            place=kit.place(city=event.get("strOrigin")),
            description=pushed or kit.text(event.get("strAction")),
        ),
        number,
        rejections,
        service=service,
    )


CARRIER: Final = kit.Carrier(
    carrier_id="dtdc",
    name="DTDC",
    number_fields=("strShipmentNo",),
    normalizers={"1": normalize},
    formats=("Tracking JSON", "Status push JSON"),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
