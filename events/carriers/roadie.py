"""Roadie: its shipment object, by itself or in a list; every push repeats the whole history.

Events have a name and a UTC time; a place is a pair of coordinates, which no parcel is
found by, and is left out.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("roadie_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(formats=kit.ISO)

_WRAPPERS: Final = ("shipments", "shipment", "data")
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message"})
_UNKNOWN: Final = "JSON, but no shipment of Roadie"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, shipment in _shipments(kit.read_json(body), "", rejections):
        found = kit.readings_of(
            _scans(shipment, where, received_at, rejections),
            kit.text(shipment.get("tracking_number")),
            rejections,
        )
        yield from kit.with_signer(found, kit.signer(shipment.get("signatory_name")))


def _shipments(
    body: object, where: str, rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject]]:
    for at, member in kit.members(body, where, rejections, unknown=_UNKNOWN):
        wrapper = next((name for name in _WRAPPERS if type(member.get(name)) in (dict, list)), None)
        if "tracking_number" in member:
            yield at, member
        elif wrapper is not None:
            yield from _shipments(member[wrapper], f"{at}/{wrapper}", rejections)
        elif not _ERROR_FIELDS & member.keys():
            raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, _UNKNOWN)


def _scans(
    shipment: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(shipment, "events", where, rejections):
        code = kit.text(event.get("name"))
        raw = kit.Raw(code=code)
        yield kit.Scan(
            where=f"{where}/events/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(kit.text(event.get("occurred_at")), received_at=received_at),
        )


CARRIER: Final = kit.Carrier(
    carrier_id="roadie",
    name="Roadie",
    number_fields=("tracking_number",),
    normalizers={"1": normalize},
    formats=("Shipment JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
