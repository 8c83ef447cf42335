"""SEKO OmniParcel: consignments with their whole history, one or a list of them.

The OmniCode is SEKO's and decides; the code of the delivering carrier accompanies it. Several
events may carry the same second. Times are local to the place and print no zone.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("seko_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d[ %H:%M[:%S][%f]]"
    )
)

_NUMBER: Final = "ConsignmentNo"
_ERROR_FIELDS: Final = frozenset(
    {"Errors", "Error", "error", "errors", "Message", "message", "ValidationErrors", "StatusCode"}
)


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, consignment in _consignments(kit.read_json(body), rejections):
        yield from kit.readings_of(
            _scans(consignment, where, received_at, rejections),
            kit.text(consignment.get(_NUMBER)),
            rejections,
        )


def _consignments(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is list:
        for index, member in kit.objects(body, "", rejections):
            yield from (
                (f"/{index}{where}", consignment)
                for where, consignment in _consignments(member, rejections)
            )
    elif type(body) is dict and (_NUMBER in body or "Events" in body):
        yield "", body
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no consignment of SEKO"
        )


def _scans(
    consignment: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    found = list(kit.objects_at(consignment, "Events", where, rejections))
    printed = (
        kit.position_in_line(kit.text(event.get("Location")), two_letters="country")
        for _, event in found
    )
    journey = kit.Journey(origin=next((at for at in printed if at.country), kit.NOWHERE))
    for index, event in found:
        code, own = kit.text(event.get("OmniCode")), kit.text(event.get("Code"))
        where_at = kit.position_in_line(kit.text(event.get("Location")), two_letters="country")
        raw = kit.Raw(code=code or own, reason=own if code else None)
        yield kit.Scan(
            where=f"{where}/Events/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(
                kit.text(event.get("EventDT")), where_at, received_at=received_at, journey=journey
            ),
            place=where_at,
            description=kit.text(event.get("Description")),
            piece=kit.text(event.get("Part")),
        )


CARRIER: Final = kit.Carrier(
    carrier_id="seko",
    name="SEKO",
    number_fields=("ConsignmentNo",),
    normalizers={"1": normalize},
    formats=("OmniParcel tracking JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
