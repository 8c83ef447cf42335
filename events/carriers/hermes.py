"""Hermes Germany: the shipment information of its tracking API, one shipment or a list of them.

Codes have four digits (two of the main step, two of its detail); zeros in front belong to them. `result` in place of `status` says that
nothing is known. Steps that take back the last status are corrections. The newer API prints the progress of a parcel, each step with a
name instead of a code.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import PrintedTime, Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child, members, objects_at
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock, read_epoch

CODES: Final = meanings("hermes_codes.csv")
_meaning: Final = by_code(CODES)

FORMATS: Final = TimeFormats(
    "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d[ %H:%M:%S]"
)
CLOCK: Final = Clock(formats=FORMATS, default_zone="Europe/Berlin", country="DE")

EPOCHS_MAX: Final = 10**15

_LIST: Final = "shipmentinfo"
_PROGRESS: Final = "parcelProgress"
_ERROR_FIELDS: Final = frozenset(
    {"error", "errors", "code", "message", "listOfResultCodes", "result"}
)
_UNKNOWN: Final = "JSON, but no shipment information of Hermes"


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    for where, shipment in _shipments(read_json(body), rejections):
        if _PROGRESS in shipment:
            yield from readings_of(
                _steps(shipment, where, received_at, rejections),
                text(shipment.get("barcode")),
                rejections,
            )
            continue
        found = readings_of(
            _scans(shipment, where, received_at, rejections),
            text(shipment.get("shipmentID")),
            rejections,
        )
        yield from with_estimate(
            found, estimate(text(child(shipment, "deliveryForecast").get("date")), FORMATS)
        )


def _shipments(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    for where, member in members(body, "", rejections, unknown=_UNKNOWN):
        if _LIST in member:
            yield from (
                (f"{where}/{_LIST}/{index}", each)
                for index, each in objects_at(member, _LIST, where, rejections)
            )
        elif "shipmentID" in member or _PROGRESS in member:
            yield where, member
        elif not _ERROR_FIELDS & member.keys():
            raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, _UNKNOWN)


def _steps(
    parcel: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, step in objects_at(parcel, _PROGRESS, where, rejections):
        raw = Raw(code=text(step.get("parcelStatus")))
        yield Scan(
            where=f"{where}/{_PROGRESS}/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=_time(step.get("timestamp"), received_at),
            description=text(step.get("historyText")),
        )


def _time(printed: object, received_at: datetime) -> PrintedTime | None:
    """Read a time; the names of the newer API come with a text, or with an epoch in milliseconds."""
    if type(printed) is int and abs(printed) < EPOCHS_MAX:
        return read_epoch(printed, milliseconds=True, received_at=received_at)
    return CLOCK.read(text(printed), received_at=received_at)


def _scans(
    shipment: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, status in objects_at(
        shipment, "status", where, rejections, required="result" not in shipment
    ):
        unit = child(status, "scanningUnit")
        where_at = place(
            city=unit.get("city"), postal_code=unit.get("zipCode"), country=unit.get("countryCode")
        )
        code = text(status.get("code"))
        raw = Raw(code=code)
        yield Scan(
            where=f"{where}/status/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(text(status.get("timestamp")), where_at, received_at=received_at),
            place=where_at,
            description=text(status.get("description")),
        )


CARRIER: Final = Carrier(
    carrier_id="hermes",
    name="Hermes Germany",
    number_fields=("shipmentID", "barcode"),
    normalizers={"1": normalize},
    formats=("Shipment information JSON", "Parcel progress JSON"),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
