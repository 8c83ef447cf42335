"""Veho: tracking information of packages, each with its history.

Date and time are two fields without a zone, local to the place; Veho delivers in the United States
only.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# The code in lower case.
CODES: Final = kit.meanings("veho_codes.csv")

FORMATS: Final = kit.TimeFormats("%Y-%m-%d[ %H:%M[:%S][%f][%z]]", "%Y-%m-%dT%H:%M:%S[%f][%z]")
CLOCK: Final = kit.Clock(formats=FORMATS, default_zone="America/Chicago", country="US")

_INFO: Final = "trackingInfo"
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, package in _packages(kit.read_json(body), rejections):
        found = kit.readings_of(
            _scans(package, where, received_at, rejections),
            kit.text(package.get("trackingNumber")),
            rejections,
        )
        yield from kit.with_estimate(
            found, kit.estimate(kit.text(package.get("estimatedDelivery")), FORMATS)
        )


def _packages(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is list:
        for index, member in kit.objects(body, "", rejections):
            yield from (
                (f"/{index}{where}", package) for where, package in _packages(member, rejections)
            )
    elif type(body) is dict and _INFO in body:
        yield from (
            (f"/{_INFO}/{index}", package)
            for index, package in kit.objects_at(body, _INFO, "", rejections)
        )
    elif type(body) is dict and "trackingNumber" in body and "events" in body:
        yield "", body
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking information of Veho"
        )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    return CODES.get(((raw.code or "").lower(),), kit.UNMAPPED)


def _scans(
    package: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(package, "events", where, rejections):
        line = kit.text(event.get("location"))
        where_at = kit.position_in_line(line, country="US" if line else None)
        raw, date, time = (
            kit.Raw(code=kit.text(event.get("code"))),
            kit.text(event.get("date")),
            kit.text(event.get("time")),
        )
        yield kit.Scan(
            where=f"{where}/events/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(
                f"{date} {time}" if date and time else date, where_at, received_at=received_at
            ),
            place=where_at,
            description=kit.text(event.get("description")),
        )


CARRIER: Final = kit.Carrier(
    carrier_id="veho",
    name="Veho",
    number_fields=("trackingNumber",),
    normalizers={"1": normalize},
    formats=("Tracking information JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
