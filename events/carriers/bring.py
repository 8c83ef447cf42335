"""Bring and Posten Norge: answers of the Tracking API.

A status names the group of an event; the event's own code (`lmEventCode`) is the network's and is in no public list. Times print their
offset. An event that a sender or a recipient caused may be marked as insignificant; it is one all the same.
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
from events.parsing.lists import JsonObject, child, objects_at
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text, without_markup
from events.parsing.times import Clock

CODES: Final = meanings("bring_codes.csv")
_meaning: Final = by_code(CODES)

FORMATS: Final = TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%-d.%-m.%Y[ %-H:%M]", "%Y-%m-%d")
CLOCK: Final = Clock(formats=FORMATS, default_zone="Europe/Oslo")

_CONSIGNMENTS: Final = "consignmentSet"
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message", "apiVersion"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer; a consignment with an error says nothing."""
    for where, package in _packages(read_json(body), rejections):
        found = readings_of(
            _scans(package, where, received_at, rejections),
            text(package.get("packageNumber")),
            rejections,
            service=text(package.get("productName")),
        )
        yield from with_estimate(
            found, estimate(text(package.get("dateOfEstimatedDelivery")), FORMATS)
        )


def _packages(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is dict and _CONSIGNMENTS in body:
        for index, consignment in objects_at(body, _CONSIGNMENTS, "", rejections):
            yield from _of_consignment(consignment, f"/{_CONSIGNMENTS}/{index}", rejections)
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no tracking of Bring")


def _of_consignment(
    consignment: JsonObject, where: str, rejections: Rejections
) -> Iterator[tuple[str, JsonObject]]:
    pointer = f"{where}/packageSet"
    yield from (
        (f"{pointer}/{index}", package)
        for index, package in objects_at(consignment, "packageSet", where, rejections)
    )


def _scans(
    package: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, event in objects_at(package, "eventSet", where, rejections):
        further = tuple(
            code
            for name in ("lmEventCode", "lmCauseCode", "lmMeasureCode")
            if (code := text(event.get(name)))
        )
        raw = Raw(code=text(event.get("status")), further=further)
        at = place(
            city=event.get("city"),
            postal_code=event.get("postalCode"),
            country=event.get("countryCode"),
            facility=event.get("unitId"),
        )
        date, time = text(event.get("displayDate")), text(event.get("displayTime"))
        printed = text(event.get("dateIso")) or (f"{date} {time}" if date and time else date)
        yield Scan(
            where=f"{where}/eventSet/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(printed, at, received_at=received_at),
            place=at,
            description=without_markup(text(event.get("description"))),
            signed_by=child(event, "recipientSignature").get("name"),
        )


CARRIER: Final = Carrier(
    carrier_id="bring",
    name="Bring",
    number_fields=("packageNumber",),
    normalizers={"1": normalize},
    formats=("Tracking JSON",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
