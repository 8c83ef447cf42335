"""SEKO OmniParcel: consignments with their whole history, one or a list of them.

The OmniCode is SEKO's and decides; the code of the delivering carrier accompanies it. Several events may carry the same second. Times
are local to the place and print no zone.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import NOWHERE, Raw, Reading
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lines import position_in_line
from events.parsing.lists import JsonObject, objects, objects_at
from events.parsing.meanings import by_code, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock
from events.parsing.whereabouts import Journey

CODES: Final = meanings("seko_codes.csv")
_meaning: Final = by_code(CODES)

CLOCK: Final = Clock(
    formats=TimeFormats(
        "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d[ %H:%M[:%S][%f]]"
    )
)

_NUMBER: Final = "ConsignmentNo"
_ERROR_FIELDS: Final = frozenset(
    {"Errors", "Error", "error", "errors", "Message", "message", "ValidationErrors", "StatusCode"}
)


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    for where, consignment in _consignments(read_json(body), rejections):
        yield from readings_of(
            _scans(consignment, where, received_at, rejections),
            text(consignment.get(_NUMBER)),
            rejections,
        )


def _consignments(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is list:
        for index, member in objects(body, "", rejections):
            yield from (
                (f"/{index}{where}", consignment)
                for where, consignment in _consignments(member, rejections)
            )
    elif type(body) is dict and (_NUMBER in body or "Events" in body):
        yield "", body
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no consignment of SEKO")


def _scans(
    consignment: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    found = list(objects_at(consignment, "Events", where, rejections))
    printed = (
        position_in_line(text(event.get("Location")), two_letters="country") for _, event in found
    )
    journey = Journey(origin=next((at for at in printed if at.country), NOWHERE))
    for index, event in found:
        code, own = text(event.get("OmniCode")), text(event.get("Code"))
        where_at = position_in_line(text(event.get("Location")), two_letters="country")
        raw = Raw(code=code or own, reason=own if code else None)
        yield Scan(
            where=f"{where}/Events/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(
                text(event.get("EventDT")), where_at, received_at=received_at, journey=journey
            ),
            place=where_at,
            description=text(event.get("Description")),
            piece=text(event.get("Part")),
        )


CARRIER: Final = Carrier(
    carrier_id="seko",
    name="SEKO",
    number_fields=("ConsignmentNo",),
    normalizers={"1": normalize},
    formats=("OmniParcel tracking JSON",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
