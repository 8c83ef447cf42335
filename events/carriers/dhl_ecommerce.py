"""DHL eCommerce Americas: tracking answers of API v4, and webhooks in the same form.

A webhook carries the whole history of a package. Date, time and the short name of a zone of the
United States (`ET`) are three fields; DHL prints the standard name all year. The public tracking
page prints the fields of a package a level higher.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("dhl_ecommerce_codes.csv")
_meaning: Final = kit.by_code(CODES)

FORMATS: Final = kit.TimeFormats("%Y-%m-%d[ %H:%M[:%S][%f]]", "%Y-%m-%dT%H:%M:%S[%f][%z]")
CLOCK: Final = kit.Clock(formats=FORMATS, default_zone="America/New_York")

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
# In the order in which they name a package: the label's own number first.
_NUMBERS: Final = ("trackingId", "dhlPackageId", "packageId")
_PACKAGES: Final = "packages"
_ERROR_FIELDS: Final = frozenset({"title", "error", "errors", "message", "status", "type"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, entry in _entries(kit.read_json(body), rejections):
        package = kit.child(entry, "package") or entry
        number = next(
            (number for name in _NUMBERS if (number := kit.text(package.get(name)))), None
        )
        found = kit.readings_of(
            _scans(entry, where, received_at, rejections),
            number,
            rejections,
            service=kit.text(package.get("productName")),
        )
        found = kit.with_signer(found, kit.text(kit.child(entry, "recipient").get("signedForName")))
        expected = kit.text(package.get("expectedDelivery")) or kit.text(
            package.get("estimatedDeliveryDate")
        )
        yield from kit.with_estimate(found, kit.estimate(expected, FORMATS))


def _entries(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is dict and _PACKAGES in body:
        yield from (
            (f"/{_PACKAGES}/{index}", entry)
            for index, entry in kit.objects_at(body, _PACKAGES, "", rejections)
        )
    elif type(body) is dict and "events" in body:
        yield "", body
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of DHL eCommerce Americas"
        )


def _scans(
    entry: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(entry, "events", where, rejections):
        raw = kit.Raw(
            code=kit.text(event.get("primaryEventId")),
            reason=kit.text(event.get("secondaryEventId")),
        )
        where_at = _place(event)
        words = (
            kit.text(event.get("primaryEventDescription")),
            kit.text(event.get("secondaryEventDescription")),
        )
        yield kit.Scan(
            where=f"{where}/events/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=_time(event, where_at, received_at),
            place=where_at,
            description=" - ".join(part for part in words if part) or None,
        )


def _place(event: kit.JsonObject) -> kit.EventPlace:
    """Read `Hebron, KY, US` and a postal code next to it."""
    line, postal_code = (
        kit.position_in_line(kit.text(event.get("location")), two_letters="country"),
        kit.text(event.get("postalCode")),
    )
    return line if postal_code is None else line._replace(postal_code=postal_code)


def _time(
    event: kit.JsonObject, where_at: kit.EventPlace, received_at: datetime
) -> kit.PrintedTime | None:
    date, time, short = (
        kit.text(event.get("date")),
        kit.text(event.get("time")),
        kit.text(event.get("timeZone")),
    )
    printed = f"{date} {time}" if date and time else date
    # by zone, not by offset: DHL prints the standard name all year
    named = _ZONES.get((short or "").upper(), short)
    found = CLOCK.read_with_offset(printed, named, where_at, received_at=received_at)
    return found if found is None or found.zone is None else replace(found, zone=short)


CARRIER: Final = kit.Carrier(
    carrier_id="dhl_ecommerce",
    name="DHL eCommerce Americas",
    number_fields=("|".join(_NUMBERS),),
    normalizers={"1": normalize},
    formats=("Tracking v4 JSON", "Tracking webhook JSON"),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
