"""Pitney Bowes: answers about Newgistics returns (`Packages`), and of its Shipping API.

A return prints the day of a scan in one Microsoft date and the time of day in another, each with
the offset of the server: the wall clock of both together is that of the place. The Shipping API
(`scanDetailsList`) repeats the codes of the carrier that delivers, each with its meaning.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from events.carriers import kit

# (level, code): of a return, or the `status` that the Shipping API prints next to a scan.
CODES: Final = kit.meanings("pitney_bowes_codes.csv")

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%Y-%m-%d[ %H:%M[:%S]]"), default_zone="America/New_York", country="US"
)

_EPOCH: Final = re.compile(
    r"/Date\((?P<milliseconds>-?\d{1,15})(?P<sign>[+-])(?P<hours>\d\d)(?P<minutes>\d\d)\)/",
    re.ASCII,
)
_ERROR_FIELDS: Final = frozenset({"errors", "error", "errorCode", "ErrorMessage"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, package in _packages(kit.read_json(body), "", rejections):
        if "PackageTrackingEvents" in package or "TrackingNumber" in package:
            scans = _of_return(package, where, received_at, rejections)
            found = kit.readings_of(
                scans,
                kit.text(package.get("TrackingNumber")),
                rejections,
                service=kit.text(package.get("Service")),
            )
            yield from kit.with_signer(found, kit.signer(package.get("Signer")))
        else:
            found = kit.readings_of(
                _scans(package, where, received_at, rejections),
                kit.text(package.get("trackingNumber")),
                rejections,
            )
            signed = kit.with_signer(found, kit.signer(package.get("signedBy")))
            yield from kit.with_estimate(
                signed, kit.estimate(kit.text(package.get("estimatedDeliveryDate")), CLOCK.formats)
            )


def _packages(
    body: object, where: str, rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is list:
        for index, member in kit.objects(body, where, rejections):
            yield from _packages(member, f"{where}/{index}", rejections)
    elif type(body) is dict and "Packages" in body:
        for index, package in kit.objects_at(body, "Packages", where, rejections):
            yield from _packages(package, f"{where}/Packages/{index}", rejections)
    elif type(body) is dict and {"PackageTrackingEvents", "scanDetailsList"} & body.keys():
        # a message about an error stands in place of the scans
        if kit.text(body.get("ErrorMessage")) is None:
            yield where, body
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Pitney Bowes"
        )


def _of_return(
    package: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(package, "PackageTrackingEvents", where, rejections):
        at = kit.place(
            city=event.get("City"),
            region=event.get("State"),
            postal_code=event.get("PostalCode"),
            country="US",
        )
        code, of_carrier = kit.text(event.get("EventCode")), kit.text(event.get("CarrierCode"))
        raw = kit.Raw(code=code, further=(of_carrier,) if of_carrier and of_carrier != code else ())
        yield kit.Scan(
            where=f"{where}/PackageTrackingEvents/{index}",
            raw=raw,
            meaning=CODES.get(("return", code or ""), kit.UNMAPPED),
            time=_time(kit.text(event.get("Date")), kit.text(event.get("Time")), at, received_at),
            place=at,
            description=kit.text(event.get("EventDescription")),
        )


def _time(
    day: str | None, clock: str | None, at: kit.EventPlace, received_at: datetime
) -> kit.PrintedTime | None:
    # the day of the one and the time of day of the other, each by its own offset
    dated, timed = _wall(day), _wall(clock)
    if dated is None:
        return CLOCK.read(day, at, received_at=received_at)
    wall = f"{dated:%Y-%m-%d}" if timed is None else f"{dated:%Y-%m-%d} {timed:%H:%M:%S}"
    found = CLOCK.read(wall, at, received_at=received_at)
    # as printed, for evidence: the wall clock was put together here
    printed = " ".join(part for part in (day, clock) if part)
    return replace(found, printed=printed) if found is not None else None


def _wall(printed: str | None) -> datetime | None:
    """Return the wall clock that a Microsoft date means by its own offset."""
    found = _EPOCH.fullmatch(printed or "")
    if found is None:
        return None
    offset = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"])) * (
        -1 if found["sign"] == "-" else 1
    )
    # no place is farther from UTC: it is no offset
    if abs(offset) > timedelta(hours=14):
        return None
    try:
        instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
            milliseconds=int(found["milliseconds"])
        )
        return instant.astimezone(timezone(offset))
    except OverflowError:
        return None


def _scans(
    package: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(package, "scanDetailsList", where, rejections):
        at = kit.place(
            city=event.get("eventCity"),
            region=event.get("eventStateOrProvince"),
            postal_code=event.get("postalCode"),
            country=event.get("country"),
        )
        code, status = kit.text(event.get("scanType")), kit.text(event.get("packageStatus"))
        raw = kit.Raw(code=code or status, further=(status,) if code and status else ())
        printed = (
            " ".join(
                part
                for part in (kit.text(event.get("eventDate")), kit.text(event.get("eventTime")))
                if part
            )
            or None
        )
        yield kit.Scan(
            where=f"{where}/scanDetailsList/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(printed, at, received_at=received_at),
            place=at,
            description=kit.text(event.get("scanDescription")),
        )


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    meaning = _meaning(raw)
    return meaning if meaning is not kit.UNMAPPED else CODES.get(("return", raw.code or ""))


def _meaning(raw: kit.Raw) -> kit.Meaning:
    """Read a state by its name, and a scan by the carrier's finer code."""
    status = raw.further[0] if raw.further else raw.code
    of_scan, of_status = (
        CODES.get(("scan", raw.code or "")),
        CODES.get(("status", "".join((status or "").split()).casefold())),
    )
    # `InTransit` covers many scans, for which the carrier's code is finer
    if of_status is None or (of_scan is not None and of_status.status is kit.Status.IN_TRANSIT):
        return of_scan or kit.UNMAPPED
    return of_status


CARRIER: Final = kit.Carrier(
    carrier_id="pitney_bowes",
    name="Pitney Bowes",
    number_fields=("TrackingNumber", "trackingNumber"),
    normalizers={"1": normalize},
    formats=("Newgistics returns JSON", "Shipping API JSON"),
    texts=frozenset({"In Transit"}),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
