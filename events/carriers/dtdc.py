"""DTDC: tracking answers (`trackDetails`) and pushes (`shipmentStatus`). Dates are DDMMYYYY, times HHMM, both Indian."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child, objects, objects_at
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("dtdc_codes.csv")
_meaning: Final = by_code(CODES)
CLOCK: Final = Clock(
    formats=TimeFormats(
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


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    for where, answer in _answers(read_json(body), rejections):
        number = next(
            (
                found
                for name in _HEADERS
                if (found := text(child(answer, name).get("strShipmentNo")))
            ),
            None,
        )
        service = next(
            (
                found
                for name in _HEADERS
                if (found := text(child(answer, name).get("strCNProduct")))
            ),
            None,
        )
        for name in _LISTS:
            pointer = f"{where}/{name}"
            for index, event in objects_at(
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


def _answers(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{at}", answer) for at, answer in objects(body, "", rejections)]
    )
    if not any(
        {*_LISTS, *_HEADERS, "errorDetails", "statusFlag"} & answer.keys() for _, answer in found
    ):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no tracking of DTDC")
    yield from found


def _reading(
    event: JsonObject,
    number: str | None,
    where: str,
    received_at: datetime,
    rejections: Rejections,
    *,
    service: str | None,
) -> tuple[Reading, ...]:
    """Read an event; a push prints the code where an answer prints its words."""
    pushed = text(event.get("strActionDesc"))
    code = text(event.get("strCode")) or (text(event.get("strAction")) if pushed else None)
    date, time, manifest = (
        text(event.get(name)) for name in ("strActionDate", "strActionTime", "strManifestNo")
    )
    raw = Raw(code=code, further=(manifest,) if manifest else ())
    return reading_of(
        Scan(
            where=where,
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(f"{date} {time}" if date and time else date, received_at=received_at),
            place=place(city=event.get("strOrigin")),
            description=pushed or text(event.get("strAction")),
        ),
        number,
        rejections,
        service=service,
    )


CARRIER: Final = Carrier(
    carrier_id="dtdc",
    name="DTDC",
    number_fields=("strShipmentNo",),
    normalizers={"1": normalize},
    formats=("Tracking JSON", "Status push JSON"),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
