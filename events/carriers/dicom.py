"""Dicom (GLS Canada): the tracking answer of one waybill. Each activity belongs to one parcel of it; a parcel has no number of its own."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.formats import ISO
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, objects, objects_at, recognised
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("dicom_codes.csv")
_meaning: Final = by_code(CODES)
CLOCK: Final = Clock(formats=ISO, default_zone="America/Toronto", country="CA")
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message", "Message", "detail"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one or several waybills."""
    for where, waybill in _waybills(read_json(body), rejections):
        pointer = f"{where}/activities"
        for index, activity in objects_at(waybill, "activities", where, rejections):
            code = text(activity.get("code"))
            words = (text(activity.get("status")), text(activity.get("statusDetail")))
            raw = Raw(code=code, reason=text(activity.get("codeDetail")))
            yield from reading_of(
                Scan(
                    where=f"{pointer}/{index}",
                    piece=text(activity.get("parcelId")),
                    raw=raw,
                    meaning=_meaning(raw),
                    time=CLOCK.read(text(activity.get("activityDate")), received_at=received_at),
                    place=place(facility=activity.get("terminal")),
                    description=", ".join(part for part in words if part) or None,
                ),
                text(waybill.get("trackingNumber")),
                rejections,
            )


def _waybills(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{at}", waybill) for at, waybill in objects(body, "", rejections)]
    )
    known = recognised(found, {"activities", "trackingNumber"}, rejections)
    if not known and not any(_ERROR_FIELDS & waybill.keys() for _, waybill in found):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no tracking of Dicom")
    yield from known


CARRIER: Final = Carrier(
    carrier_id="dicom",
    name="Dicom (GLS Canada)",
    number_fields=("trackingNumber",),
    normalizers={"1": normalize},
    formats=("Tracking JSON",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
