"""Dicom (GLS Canada): the tracking answer of a waybill.

Each activity belongs to a parcel of it; a parcel has no number of its own.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("dicom_codes.csv")
_meaning: Final = kit.by_code(CODES)
CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="America/Toronto", country="CA")
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message", "Message", "detail"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, waybill in _waybills(kit.read_json(body), rejections):
        pointer = f"{where}/activities"
        for index, activity in kit.objects_at(waybill, "activities", where, rejections):
            code = kit.text(activity.get("code"))
            words = (kit.text(activity.get("status")), kit.text(activity.get("statusDetail")))
            raw = kit.Raw(code=code, reason=kit.text(activity.get("codeDetail")))
            yield from kit.reading_of(
                kit.Scan(
                    where=f"{pointer}/{index}",
                    piece=kit.text(activity.get("parcelId")),
                    raw=raw,
                    meaning=_meaning(raw),
                    time=CLOCK.read(
                        kit.text(activity.get("activityDate")), received_at=received_at
                    ),
                    place=kit.place(facility=activity.get("terminal")),
                    description=", ".join(part for part in words if part) or None,
                ),
                kit.text(waybill.get("trackingNumber")),
                rejections,
            )


def _waybills(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{at}", waybill) for at, waybill in kit.objects(body, "", rejections)]
    )
    known = kit.recognised(found, {"activities", "trackingNumber"}, rejections)
    if not known and not any(_ERROR_FIELDS & waybill.keys() for _, waybill in found):
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of Dicom")
    yield from known


CARRIER: Final = kit.Carrier(
    carrier_id="dicom",
    name="Dicom (GLS Canada)",
    number_fields=("trackingNumber",),
    normalizers={"1": normalize},
    formats=("Tracking JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
