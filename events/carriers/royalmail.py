"""Royal Mail: the answers of Tracking API v2 (`mailPieces`: one piece as an object, or a list of pieces).

The summary call has no events but names the last one, which is a scan like any other. An event whose code is not known is read by its
name, and the last one by the category next to it (`by_category`). A signature is shown while the item is still on its way: it counts for
a delivery only.
The codes are those of its tracking file interface (`lists/royalmail_codes.csv`) and of public answers of the API.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import estimate, with_estimate, with_signer
from events.parsing.formats import ISO
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, as_list, child, objects_at
from events.parsing.meanings import Meaning, finest, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import collapse, signer, text
from events.parsing.times import Clock

CODES: Final = meanings("royalmail_codes.csv")
"""(level, code): `event`, a `name` of events in lower case, or the `category` of a piece's last event."""

CLOCK: Final = Clock(formats=ISO, default_zone="Europe/London")

_PIECES: Final = "mailPieces"
_ERROR_FIELDS: Final = frozenset({"error", "errors", "httpCode", "httpMessage", "message"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    for where, piece in _pieces(read_json(body), rejections):
        summary = child(piece, "summary")
        number = (
            text(summary.get("oneDBarcode"))
            or text(summary.get("uniqueItemId"))
            or text(piece.get("mailPieceId"))
        )
        found = readings_of(
            _scans(piece, where, received_at, rejections),
            number,
            rejections,
            service=text(summary.get("productName")),
        )
        found = with_signer(found, signer(child(piece, "signature").get("recipientName")))
        yield from with_estimate(
            found, estimate(text(child(piece, "estimatedDelivery").get("date")), ISO)
        )


def _pieces(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is not dict or not (_PIECES in body or _ERROR_FIELDS & body.keys()):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no mail pieces of Royal Mail")
    for index, piece in objects_at(body, _PIECES, "", rejections):
        yield f"/{_PIECES}/{index}", piece


def _scans(
    piece: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    summary = child(piece, "summary")
    last = {
        "eventCode": summary.get("lastEventCode"),
        "eventName": summary.get("lastEventName"),
        "eventDateTime": summary.get("lastEventDateTime"),
        "locationName": summary.get("lastEventLocationName"),
    }
    is_summarised = text(last["eventCode"]) is not None
    events = objects_at(piece, "events", where, rejections, required=not is_summarised)
    if not as_list(piece.get("events")) and is_summarised:
        events = [(0, last)]
    for index, event in events:
        is_last = (event.get("eventCode"), event.get("eventDateTime")) == (
            last["eventCode"],
            last["eventDateTime"],
        )
        raw = Raw(code=text(event.get("eventCode")))
        where_at, name = place(city=event.get("locationName")), text(event.get("eventName"))
        yield Scan(
            where=f"{where}/events/{index}",
            raw=raw,
            meaning=_meaning(
                raw, name or "", text(summary.get("statusCategory")) if is_last else None
            ),
            time=CLOCK.read(text(event.get("eventDateTime")), where_at, received_at=received_at),
            place=where_at,
            description=name,
        )


def _reread(raw: Raw) -> Meaning | None:
    """Read a known code; an unknown one may be read by what stands next to it."""
    return CODES.get(("event", raw.code or ""))


def _meaning(raw: Raw, name: str, category: str | None) -> Meaning:
    named = CODES.get(("name", collapse(name).casefold()))
    return finest(
        (raw.code, _reread(raw)),
        (name, named),
        (category, CODES.get(("category", (category or "").upper()))),
    )


CARRIER: Final = Carrier(
    carrier_id="royalmail",
    name="Royal Mail",
    number_fields=("oneDBarcode|uniqueItemId", "mailPieceId"),
    normalizers={"1": normalize},
    formats=("Tracking API v2 JSON",),
    reread=_reread,
    authentication=(ShipperChoice(),),
)
