"""Hermes Germany: the shipment information of its tracking API, a shipment or a list of them.

Codes have four digits (two of the main step, two of its detail), with leading zeros. `result` in
place of `status` means an unknown number. Steps that retract the last status are corrections. The
newer API prints the progress of a parcel, each step with a name instead of a code.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("hermes_codes.csv")
_meaning: Final = kit.by_code(CODES)

FORMATS: Final = kit.TimeFormats(
    "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d[ %H:%M:%S]"
)
CLOCK: Final = kit.Clock(formats=FORMATS, default_zone="Europe/Berlin", country="DE")

EPOCHS_MAX: Final = 10**15

_LIST: Final = "shipmentinfo"
_PROGRESS: Final = "parcelProgress"
_ERROR_FIELDS: Final = frozenset(
    {"error", "errors", "code", "message", "listOfResultCodes", "result"}
)
_UNKNOWN: Final = "JSON, but no shipment information of Hermes"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, shipment in _shipments(kit.read_json(body), rejections):
        if _PROGRESS in shipment:
            yield from kit.readings_of(
                _steps(shipment, where, received_at, rejections),
                kit.text(shipment.get("barcode")),
                rejections,
            )
            continue
        found = kit.readings_of(
            _scans(shipment, where, received_at, rejections),
            kit.text(shipment.get("shipmentID")),
            rejections,
        )
        yield from kit.with_estimate(
            found,
            kit.estimate(kit.text(kit.child(shipment, "deliveryForecast").get("date")), FORMATS),
        )


def _shipments(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    for where, member in kit.members(body, "", rejections, unknown=_UNKNOWN):
        if _LIST in member:
            yield from (
                (f"{where}/{_LIST}/{index}", each)
                for index, each in kit.objects_at(member, _LIST, where, rejections)
            )
        elif "shipmentID" in member or _PROGRESS in member:
            yield where, member
        elif not _ERROR_FIELDS & member.keys():
            raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, _UNKNOWN)


def _steps(
    parcel: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, step in kit.objects_at(parcel, _PROGRESS, where, rejections):
        raw = kit.Raw(code=kit.text(step.get("parcelStatus")))
        yield kit.Scan(
            where=f"{where}/{_PROGRESS}/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=_time(step.get("timestamp"), received_at),
            description=kit.text(step.get("historyText")),
        )


def _time(printed: object, received_at: datetime) -> kit.PrintedTime | None:
    """Read a time; the names of the newer API come with a text, or with an epoch in
    milliseconds.
    """
    # beyond it no date exists, and the conversion would overflow
    if type(printed) is int and abs(printed) < EPOCHS_MAX:
        return kit.read_epoch(printed, milliseconds=True, received_at=received_at)
    return CLOCK.read(kit.text(printed), received_at=received_at)


def _scans(
    shipment: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, status in kit.objects_at(
        shipment, "status", where, rejections, required="result" not in shipment
    ):
        unit = kit.child(status, "scanningUnit")
        where_at = kit.place(
            city=unit.get("city"), postal_code=unit.get("zipCode"), country=unit.get("countryCode")
        )
        code = kit.text(status.get("code"))
        raw = kit.Raw(code=code)
        yield kit.Scan(
            where=f"{where}/status/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(kit.text(status.get("timestamp")), where_at, received_at=received_at),
            place=where_at,
            description=kit.text(status.get("description")),
        )


CARRIER: Final = kit.Carrier(
    carrier_id="hermes",
    name="Hermes Germany",
    number_fields=("shipmentID", "barcode"),
    normalizers={"1": normalize},
    formats=("Shipment information JSON", "Parcel progress JSON"),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
