"""DHL Parcel Germany: the tracking answer whose elements are all called `data` and whose values are all attributes.

An event is said by ICE (what), RIC (why) and the standard event code; what is loaded with `PO` goes out for delivery, while ICEs of
trouble keep their meaning. An ICE that is not known is read by its standard event code where that says enough (`by_category`). On the way
back (`ruecksendung`) movement is `returning` and a delivery `returned`. Times are German.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import with_signer
from events.parsing.formats import TimeFormats
from events.parsing.meanings import Meaning, finest, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of
from events.parsing.text import signer, text
from events.parsing.times import Clock
from events.parsing.xml import Document, answers, read_xml
from events.vocabulary import Kind, Status

CODES: Final = meanings("dhl_parcel_de_codes.csv")
"""(ICE, RIC, standard event code), each blank where it makes no difference."""

CLOCK: Final = Clock(formats=TimeFormats("%d.%m.%Y[ %H:%M[:%S]]", "%Y-%m-%dT%H:%M:%S[%f][%z]"), default_zone="Europe/Berlin")
ON_THE_WAY: Final = frozenset({Status.PICKED_UP, Status.IN_TRANSIT, Status.OUT_FOR_DELIVERY, Status.AVAILABLE_FOR_PICKUP})
COUNTRIES: Final = {
    "belgien": "BE",
    "dänemark": "DK",
    "deutschland": "DE",
    "frankreich": "FR",
    "großbritannien": "GB",
    "italien": "IT",
    "luxemburg": "LU",
    "niederlande": "NL",
    "österreich": "AT",
    "polen": "PL",
    "schweiz": "CH",
    "spanien": "ES",
    "tschechische republik": "CZ",
    "usa": "US",
}
"""Names that the German answer prints."""

WAY: Final = "ruecksendung"
BACK: Final = f"{WAY}=true"

PIECES: Final = frozenset({"piece-shipment", "piece-status-public"})
LISTS: Final = frozenset({"piece-shipment-list", "piece-status-public-list", "status-for-public-user", "piece-event-list"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Events of all pieces of one answer."""
    for index, piece in enumerate(_pieces(read_xml(body)), start=1):
        found: list[Reading] = []
        for where, event in _events(piece, f"piece-shipment[{index}]"):
            found += _reading(event, piece, where, received_at, rejections)
        yield from with_signer(found, signer(piece.get("recipient-name")))


def _pieces(document: Document) -> Iterator[_Element]:
    for answer in answers(document):
        if answer.tag != "data" or answer.get("name") not in PIECES | LISTS:
            raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of DHL Parcel Germany")
        yield from (element for element in answer.iter("data") if element.get("name") in PIECES)


def _events(piece: _Element, where: str) -> Iterator[tuple[str, _Element]]:
    """The events of a piece; a piece without any has its status as its only event, at the status' own time."""
    events = [element for element in piece.iter("data") if element.get("name") == "piece-event"]
    if not events and piece.get("ice"):
        yield where, piece
    yield from ((f"{where}/piece-event[{index}]", event) for index, event in enumerate(events, start=1))


def _reading(event: _Element, piece: _Element, where: str, received_at: datetime, rejections: Rejections) -> tuple[Reading, ...]:
    ice, ric, code = (text(event.get(name)) for name in ("ice", "ric", "standard-event-code"))
    way = text(event.get(WAY))
    raw = Raw(type=ice, code=ric, reason=code, further=(f"{WAY}={way}",) if way else ())
    meaning = _meaning(raw)
    country = text(event.get("event-country"))
    return reading_of(
        Scan(
            where=where,
            raw=raw,
            meaning=meaning,
            time=CLOCK.read(text(event.get("event-timestamp")) or text(event.get("status-timestamp")), received_at=received_at),
            place=place(city=event.get("event-location"), country=COUNTRIES.get((country or "").casefold(), country)),
            description=text(event.get("event-text")) or text(event.get("event-status")) or text(event.get("status")),
        ),
        text(piece.get("piece-code")),
        rejections,
        service=text(piece.get("product-name")),
    )


def _meaning(raw: Raw) -> Meaning:
    meaning = _of_codes(raw)
    return _on_the_way_back(meaning) if BACK in raw.further else meaning


def _of_codes(raw: Raw) -> Meaning:
    """On the way to the consignee."""
    ice, ric, code = raw.type or "", raw.code or "", raw.reason or ""
    keys = ((ice, ric, code), (ice, ric, ""), (ice, "", code), (ice, "", "")) if ice else ()
    return finest((ice, next((known for key in keys if (known := CODES.get(key))), None)), (code, CODES.get(("", "", code))))


def _reread(raw: Raw) -> Meaning | None:
    """Where the direction is not stated it may be the way back."""
    meaning = _meaning(raw)
    return meaning if raw.further or _on_the_way_back(meaning) == meaning else None


def _on_the_way_back(meaning: Meaning) -> Meaning:
    if meaning.status is Status.DELIVERED:
        return Meaning(Kind.SCAN, Status.RETURNED)
    return Meaning(Kind.SCAN, Status.RETURNING) if meaning.status in ON_THE_WAY else meaning


CARRIER: Final = Carrier(
    carrier_id="dhl_parcel_de",
    name="DHL Parcel Germany",
    number_fields=("data.@piece-code", "data.@searched-piece-code"),
    normalizers={"1": normalize},
    formats=("Sendungsverfolgung XML",),
    reread=_reread,
    authentication=(ShipperChoice(),),
)
