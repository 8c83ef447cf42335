"""La Poste and Colissimo: the answer of Suivi v2, a shipment or a list of them.

`event` holds the scans, each with a group, which reads an unknown code (`by_category`). MD2 is the
delivery tour, or the preparation of it, by a sentence of its own. `timeline` shows the same history
to people and is left out. Every member has its own `returnCode`, so an answer may hold shipments
and errors.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# (level, code, text in lower case): an `event`, with a text where a code means several things, or
# the `group` that it belongs to.
CODES: Final = kit.meanings("laposte_codes.csv")
_CLEAR: Final = kit.codes_without_text(
    {(code, words): meaning for (level, code, words), meaning in CODES.items() if level == "event"}
)

FORMATS: Final = kit.TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d")
CLOCK: Final = kit.Clock(formats=FORMATS, default_zone="Europe/Paris")

_ERROR_FIELDS: Final = frozenset(
    {"code", "error", "errors", "message", "returnCode", "returnMessage"}
)
_UNKNOWN: Final = "JSON, but no answer of La Poste"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, shipment in _shipments(kit.read_json(body), rejections):
        found = kit.readings_of(
            _scans(shipment, where, received_at, rejections),
            kit.text(shipment.get("idShip")),
            rejections,
            service=kit.text(shipment.get("product")),
        )
        yield from kit.with_estimate(
            found, kit.estimate(kit.text(shipment.get("estimDate")), FORMATS)
        )


def _shipments(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    for where, member in kit.members(body, "", rejections, unknown=_UNKNOWN):
        if "shipment" in member:
            yield from (
                (f"{where}/shipment", shipment)
                for _, shipment in kit.objects_at(member, "shipment", where, rejections)
            )
        elif "event" in member and "idShip" in member:
            yield where, member
        elif not _ERROR_FIELDS & member.keys():
            raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, _UNKNOWN)
        # an answer may hold shipments and errors: an error is none of the lost scans
        elif not kit.says_nothing(member):
            rejections.add(f"{where}/shipment", kit.NO_CONTAINER)


def _scans(
    shipment: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(shipment, "event", where, rejections):
        # an event prints no city
        where_at = kit.place(country=event.get("country"))
        label = kit.without_markup(kit.text(event.get("label")))
        raw = kit.Raw(code=kit.text(event.get("code")))
        yield kit.Scan(
            where=f"{where}/event/{index}",
            raw=raw,
            meaning=_meaning(raw.code or "", label or "", kit.text(event.get("group")) or ""),
            time=CLOCK.read(kit.text(event.get("date")), where_at, received_at=received_at),
            place=where_at,
            description=label,
        )


def _meaning(code: str, label: str, group: str) -> kit.Meaning:
    known = CODES.get(("event", code, label.casefold())) or CODES.get(("event", code, ""))
    return kit.finest((code, known), (group, CODES.get(("group", group, ""))))


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read only codes that are known and that do not depend on a sentence or a group."""
    return _CLEAR.get(raw.code or "")


CARRIER: Final = kit.Carrier(
    carrier_id="laposte",
    name="La Poste",
    number_fields=("idShip",),
    normalizers={"1": normalize},
    formats=("Suivi v2 JSON",),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
