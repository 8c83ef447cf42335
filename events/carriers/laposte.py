"""La Poste and Colissimo: the answer of Suivi v2, one shipment or a list of them.

`event` holds the scans; a group comes with each, which reads a code that is not known (`by_category`). MD2 is the delivery tour, or the
preparation of it: a sentence of its own says so. `timeline` shows the same history to people and is left out. Every member has its own
`returnCode`, so one answer may hold shipments and errors.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, members, objects_at
from events.parsing.meanings import Meaning, codes_without_text, finest, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.silence import NO_CONTAINER, says_nothing
from events.parsing.text import text, without_markup
from events.parsing.times import Clock

CODES: Final = meanings("laposte_codes.csv")
"""(level, code, text in lower case): an `event`, with a text where a code means several things, or the `group` that it belongs to."""
_CLEAR: Final = codes_without_text(
    {(code, words): meaning for (level, code, words), meaning in CODES.items() if level == "event"}
)

FORMATS: Final = TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d")
CLOCK: Final = Clock(formats=FORMATS, default_zone="Europe/Paris")

_ERROR_FIELDS: Final = frozenset(
    {"code", "error", "errors", "message", "returnCode", "returnMessage"}
)
_UNKNOWN: Final = "JSON, but no answer of La Poste"


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    for where, shipment in _shipments(read_json(body), rejections):
        found = readings_of(
            _scans(shipment, where, received_at, rejections),
            text(shipment.get("idShip")),
            rejections,
            service=text(shipment.get("product")),
        )
        yield from with_estimate(found, estimate(text(shipment.get("estimDate")), FORMATS))


def _shipments(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    for where, member in members(body, "", rejections, unknown=_UNKNOWN):
        if "shipment" in member:
            yield from (
                (f"{where}/shipment", shipment)
                for _, shipment in objects_at(member, "shipment", where, rejections)
            )
        elif "event" in member and "idShip" in member:
            yield where, member
        elif not _ERROR_FIELDS & member.keys():
            raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, _UNKNOWN)
        elif not says_nothing(member):
            rejections.add(f"{where}/shipment", NO_CONTAINER)


def _scans(
    shipment: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, event in objects_at(shipment, "event", where, rejections):
        where_at = place(country=event.get("country"))
        label = without_markup(text(event.get("label")))
        raw = Raw(code=text(event.get("code")))
        yield Scan(
            where=f"{where}/event/{index}",
            raw=raw,
            meaning=_meaning(raw.code or "", label or "", text(event.get("group")) or ""),
            time=CLOCK.read(text(event.get("date")), where_at, received_at=received_at),
            place=where_at,
            description=label,
        )


def _meaning(code: str, label: str, group: str) -> Meaning:
    known = CODES.get(("event", code, label.casefold())) or CODES.get(("event", code, ""))
    return finest((code, known), (group, CODES.get(("group", group, ""))))


def _reread(raw: Raw) -> Meaning | None:
    """Read only codes that are known and that do not depend on a sentence or a group."""
    return _CLEAR.get(raw.code or "")


CARRIER: Final = Carrier(
    carrier_id="laposte",
    name="La Poste",
    number_fields=("idShip",),
    normalizers={"1": normalize},
    formats=("Suivi v2 JSON",),
    reread=_reread,
    authentication=(ShipperChoice(),),
)
