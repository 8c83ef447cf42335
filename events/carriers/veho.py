"""Veho: tracking information of one or many packages, each with its history.

Date and time are two fields without a zone, local to the place; Veho delivers in the United States only.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lines import position_in_line
from events.parsing.lists import JsonObject, objects, objects_at
from events.parsing.meanings import UNMAPPED, Meaning, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("veho_codes.csv")
"""The code in lower case."""

FORMATS: Final = TimeFormats("%Y-%m-%d[ %H:%M[:%S][%f][%z]]", "%Y-%m-%dT%H:%M:%S[%f][%z]")
CLOCK: Final = Clock(formats=FORMATS, default_zone="America/Chicago", country="US")

_INFO: Final = "trackingInfo"
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    for where, package in _packages(read_json(body), rejections):
        found = readings_of(
            _scans(package, where, received_at, rejections),
            text(package.get("trackingNumber")),
            rejections,
        )
        yield from with_estimate(found, estimate(text(package.get("estimatedDelivery")), FORMATS))


def _packages(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is list:
        for index, member in objects(body, "", rejections):
            yield from (
                (f"/{index}{where}", package) for where, package in _packages(member, rejections)
            )
    elif type(body) is dict and _INFO in body:
        yield from (
            (f"/{_INFO}/{index}", package)
            for index, package in objects_at(body, _INFO, "", rejections)
        )
    elif type(body) is dict and "trackingNumber" in body and "events" in body:
        yield "", body
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "JSON, but no tracking information of Veho"
        )


def _meaning(raw: Raw) -> Meaning:
    return CODES.get(((raw.code or "").lower(),), UNMAPPED)


def _scans(
    package: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, event in objects_at(package, "events", where, rejections):
        line = text(event.get("location"))
        where_at = position_in_line(line, country="US" if line else None)
        raw, date, time = (
            Raw(code=text(event.get("code"))),
            text(event.get("date")),
            text(event.get("time")),
        )
        yield Scan(
            where=f"{where}/events/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(
                f"{date} {time}" if date and time else date, where_at, received_at=received_at
            ),
            place=where_at,
            description=text(event.get("description")),
        )


CARRIER: Final = Carrier(
    carrier_id="veho",
    name="Veho",
    number_fields=("trackingNumber",),
    normalizers={"1": normalize},
    formats=("Tracking information JSON",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
