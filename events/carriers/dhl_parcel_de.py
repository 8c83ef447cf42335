"""DHL Parcel Germany: the tracking answer, with all elements named `data` and values as attributes.

An event has an ICE (event), an RIC (reason) and the standard event code; `PO` turns loading into
out for delivery, while ICEs of trouble keep their meaning. An unknown ICE is read by its standard
event code where that is definite (`by_category`). On the way back (`ruecksendung`) movement is
`returning` and a delivery `returned`. Times are German.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers import kit
from events.parsing.dhl_group import parcel_de_codes, parcel_de_text

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%d.%m.%Y[ %H:%M[:%S]]", "%Y-%m-%dT%H:%M:%S[%f][%z]"),
    default_zone="Europe/Berlin",
)
# Country names of the German answer.
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

# `return shipment`, of the piece or of each of its events
WAY: Final = "ruecksendung"
BACK: Final = f"{WAY}=true"
# in the order of type, code and reason in the log: ids hold them in this order
CODE_ATTRIBUTES: Final = ("ice", "ric", "standard-event-code")
SENT_BACK: Final = "RETRN"
TIMES: Final = ("event-timestamp", "status-timestamp", "last-event-timestamp")

PIECES: Final = frozenset({"pieceshipment", "piecestatuspublic"})
EVENT_LIST: Final = "pieceeventlist"
EVENT: Final = "pieceevent"
NAMES: Final = PIECES | {
    "pieceshipmentlist",
    "piecestatuspubliclist",
    "statusforpublicuser",
    EVENT_LIST,
}
ERRORLESS: Final = (None, "", "0")

Named = list[tuple[str, _Element]]


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    named = [
        (_name(element), element)
        for answer in _answers(kit.read_xml(body))
        for element in answer.iter()
    ]
    pieces = [element for name, element in named if name in PIECES]
    lists = [element for name, element in named if name == EVENT_LIST]
    if not pieces and not lists and all(element.get("code") in ERRORLESS for _, element in named):
        rejections.add("data", "neither a piece nor an error")
    bound: set[_Element] = set()
    for index, piece in enumerate(pieces, start=1):
        # a list of events stands within its piece, or beside all pieces with the piece's id
        own = [each for each in lists if each.getparent() is piece] or [
            each for each in lists if _is_of(each, piece)
        ]
        bound.update(own)
        events = [element for element in piece.iter() if _name(element) == EVENT] or [
            event for each in own for event in _events_in(each)
        ]
        yield from _piece(piece, events, f"piece-shipment[{index}]", received_at, rejections)
    for index, each in enumerate(lists, start=1):
        # a list that no piece claims has the number in its own attributes
        if each not in bound:
            yield from _piece(
                each, _events_in(each), f"piece-event-list[{index}]", received_at, rejections
            )


def _answers(document: kit.Document) -> Iterator[_Element]:
    for answer in kit.answers(document):
        if not any(_name(element) in NAMES for element in answer.iter()):
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of DHL Parcel Germany"
            )
        yield answer


def _name(element: _Element) -> str:
    """Return an element's name: the `name` of a `data`, else its own, without hyphens."""
    # DHL calls every element `data`; other published answers have its `name` as the element's own
    return (element.get("name") or element.tag).replace("-", "").lower()


def _events_in(listed: _Element) -> list[_Element]:
    return [element for element in listed.iter() if _name(element) == EVENT]


def _is_of(listed: _Element, piece: _Element) -> bool:
    return any(
        piece.get(name) and piece.get(name) == listed.get(name)
        for name in ("piece-id", "piece-identifier", "piece-code")
    )


def _piece(
    piece: _Element,
    events: list[_Element],
    where: str,
    received_at: datetime,
    rejections: kit.Rejections,
) -> list[kit.Reading]:
    """Return the events of a piece; a piece without any has its status as its only event,
    at the status' own time.
    """
    number = (
        # the number of the label first: a piece is asked for by it, and other messages print it
        kit.text(piece.get("piece-code"))
        or kit.text(piece.get("searched-piece-code"))
        or kit.text(piece.get("piece-identifier"))
    )
    placed = [
        (f"{where}/piece-event[{index}]", event) for index, event in enumerate(events, start=1)
    ]
    if (
        not placed
        and any(piece.get(name) for name in ("ice", "standard-event-code", "status"))
        # a piece with an error has the error's words as its status
        and piece.get("error-status") in ERRORLESS
    ):
        placed = [(where, piece)]
    back = _firston_the_way_back(piece, events)
    scans = (
        _scan(
            event,
            pointer,
            received_at,
            # not before: the way forward was movement too, and its delivery attempts stay what they
            # were
            is_back=event is not piece and back is not None and _time(event) >= back,
        )
        for pointer, event in placed
    )
    found = kit.readings_of(scans, number, rejections, service=kit.text(piece.get("product-name")))
    return kit.with_signer(found, kit.signer(piece.get("recipient-name")))


def _firston_the_way_back(piece: _Element, events: list[_Element]) -> datetime | None:
    """Return the start of the way back of a piece that declares it but its events do not.

    The time of the first returning event, else of the newest.
    """
    # an event that declares its own way knows better than the piece
    if piece.get(WAY) != "true" or any(event.get(WAY) for event in events):
        return None
    times = sorted((_time(event), event.get("ice") == SENT_BACK) for event in events)
    return next((at for at, is_sent_back in times if is_sent_back), times[-1][0] if times else None)


def _time(event: _Element) -> datetime:
    # by the wall clock: only the order of one piece's events matters here
    wall = CLOCK.formats.read(kit.text(event.get("event-timestamp")) or "")
    return wall.local if wall else datetime.min  # noqa: DTZ901 - compared with local times


def _scan(event: _Element, where: str, received_at: datetime, *, is_back: bool) -> kit.Scan:
    ice, ric, code = (kit.text(event.get(name)) for name in CODE_ATTRIBUTES)
    way = "true" if is_back else kit.text(event.get(WAY))
    printed = next((found for name in TIMES if (found := kit.text(event.get(name)))), None)
    # the way enters the raw codes, so that the log alone explains why a movement is a return
    raw = kit.Raw(type=ice, code=ric, reason=code, further=(f"{WAY}={way}",) if way else ())
    country = kit.text(event.get("event-country"))
    words = (
        kit.text(event.get("event-text"))
        or kit.text(event.get("event-status"))
        or kit.text(event.get("status"))
    )
    return kit.Scan(
        where=where,
        raw=raw,
        # the text only without codes: with them it is the same statement, in many wordings
        meaning=_meaning(raw) if ice or code else parcel_de_text(words or "") or kit.UNMAPPED,
        time=CLOCK.read(printed, received_at=received_at),
        place=kit.place(
            city=event.get("event-location"),
            # the German name, which the list of countries lacks
            country=COUNTRIES.get((country or "").casefold(), country),
        ),
        description=words,
    )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    meaning = parcel_de_codes(raw)
    return kit.on_the_way_back(meaning) if BACK in raw.further else meaning


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read by the codes; without them the text decides, and where the direction is not stated
    it may be the way back.
    """
    if not raw.type and not raw.reason:
        return None
    meaning = _meaning(raw)
    return meaning if raw.further or kit.on_the_way_back(meaning) == meaning else None


CARRIER: Final = kit.Carrier(
    carrier_id="dhl_parcel_de",
    name="DHL Parcel Germany",
    number_fields=("data.@piece-code", "data.@searched-piece-code", "data.@piece-identifier"),
    normalizers={"1": normalize},
    formats=("Sendungsverfolgung XML",),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
