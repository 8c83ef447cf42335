"""DHL eCommerce Americas: tracking answers of API v4, and webhooks, which carry the whole history of one package in the same form.

Date, time and the short name of a zone of the United States (`ET`) are three fields; DHL prints the standard name all year. The public
tracking page prints the fields of a package one level higher.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, PrintedTime, Raw, Reading
from events.parsing.enrichment import estimate, with_estimate, with_signer
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lines import position_in_line
from events.parsing.lists import JsonObject, child, objects_at
from events.parsing.meanings import by_code, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("dhl_ecommerce_codes.csv")
_meaning: Final = by_code(CODES)

FORMATS: Final = TimeFormats("%Y-%m-%d[ %H:%M[:%S][%f]]", "%Y-%m-%dT%H:%M:%S[%f][%z]")
CLOCK: Final = Clock(formats=FORMATS, default_zone="America/New_York")

_ZONES: Final = {
    short: zone
    for zone, names in {
        "America/New_York": ("ET", "EST", "EDT"),
        "America/Chicago": ("CT", "CST", "CDT"),
        "America/Denver": ("MT", "MST", "MDT"),
        "America/Los_Angeles": ("PT", "PST", "PDT"),
        "America/Anchorage": ("AKT", "AKST", "AKDT"),
        "Pacific/Honolulu": ("HT", "HST"),
        "America/Puerto_Rico": ("AT", "AST"),
    }.items()
    for short in names
}
_NUMBERS: Final = ("trackingId", "dhlPackageId", "packageId")
"""In the order in which they name a package: the label's own number first."""
_PACKAGES: Final = "packages"
_ERROR_FIELDS: Final = frozenset({"title", "error", "errors", "message", "status", "type"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    for where, entry in _entries(read_json(body), rejections):
        package = child(entry, "package") or entry
        number = next((number for name in _NUMBERS if (number := text(package.get(name)))), None)
        found = readings_of(
            _scans(entry, where, received_at, rejections),
            number,
            rejections,
            service=text(package.get("productName")),
        )
        found = with_signer(found, text(child(entry, "recipient").get("signedForName")))
        expected = text(package.get("expectedDelivery")) or text(
            package.get("estimatedDeliveryDate")
        )
        yield from with_estimate(found, estimate(expected, FORMATS))


def _entries(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is dict and _PACKAGES in body:
        yield from (
            (f"/{_PACKAGES}/{index}", entry)
            for index, entry in objects_at(body, _PACKAGES, "", rejections)
        )
    elif type(body) is dict and "events" in body:
        yield "", body
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "JSON, but no tracking of DHL eCommerce Americas"
        )


def _scans(
    entry: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, event in objects_at(entry, "events", where, rejections):
        raw = Raw(
            code=text(event.get("primaryEventId")), reason=text(event.get("secondaryEventId"))
        )
        where_at = _place(event)
        words = (
            text(event.get("primaryEventDescription")),
            text(event.get("secondaryEventDescription")),
        )
        yield Scan(
            where=f"{where}/events/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=_time(event, where_at, received_at),
            place=where_at,
            description=" - ".join(part for part in words if part) or None,
        )


def _place(event: JsonObject) -> EventPlace:
    """Read `Hebron, KY, US` and a postal code next to it."""
    line, postal_code = (
        position_in_line(text(event.get("location")), two_letters="country"),
        text(event.get("postalCode")),
    )
    return line if postal_code is None else line._replace(postal_code=postal_code)


def _time(event: JsonObject, where_at: EventPlace, received_at: datetime) -> PrintedTime | None:
    date, time, short = (
        text(event.get("date")),
        text(event.get("time")),
        text(event.get("timeZone")),
    )
    printed = f"{date} {time}" if date and time else date
    named = _ZONES.get((short or "").upper(), short)
    found = CLOCK.read_with_offset(printed, named, where_at, received_at=received_at)
    return found if found is None or found.zone is None else replace(found, zone=short)


CARRIER: Final = Carrier(
    carrier_id="dhl_ecommerce",
    name="DHL eCommerce Americas",
    number_fields=("|".join(_NUMBERS),),
    normalizers={"1": normalize},
    formats=("Tracking v4 JSON", "Tracking webhook JSON"),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
