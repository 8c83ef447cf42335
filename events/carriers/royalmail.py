"""Royal Mail: the answers of Tracking API v2 (`mailPieces`: a piece as an object, or a list).

The summary call has no events but names the last one, which is a scan like any other. An event with
an unknown code is read by its name, and the last event by the category next to it (`by_category`).
A signature is shown while the item is still on its way: it counts for a delivery only. The codes
are those of its tracking file interface (`lists/royalmail_codes.csv`) and of public answers of the
API.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# (level, code): `event`, a `name` of events in lower case, or the `category` of a piece's last
# event.
CODES: Final = kit.meanings("royalmail_codes.csv")

CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="Europe/London")

_PIECES: Final = "mailPieces"
_ERROR_FIELDS: Final = frozenset({"error", "errors", "httpCode", "httpMessage", "message"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, piece in _pieces(kit.read_json(body), rejections):
        summary = kit.child(piece, "summary")
        number = (
            kit.text(summary.get("oneDBarcode"))
            or kit.text(summary.get("uniqueItemId"))
            or kit.text(piece.get("mailPieceId"))
        )
        found = kit.readings_of(
            _scans(piece, where, received_at, rejections),
            number,
            rejections,
            service=kit.text(summary.get("productName")),
        )
        found = kit.with_signer(
            found, kit.signer(kit.child(piece, "signature").get("recipientName"))
        )
        yield from kit.with_estimate(
            found,
            kit.estimate(kit.text(kit.child(piece, "estimatedDelivery").get("date")), kit.ISO),
        )


def _pieces(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is not dict or not (_PIECES in body or _ERROR_FIELDS & body.keys()):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no mail pieces of Royal Mail"
        )
    for index, piece in kit.objects_at(body, _PIECES, "", rejections):
        yield f"/{_PIECES}/{index}", piece


def _scans(
    piece: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    summary = kit.child(piece, "summary")
    last = {
        "eventCode": summary.get("lastEventCode"),
        "eventName": summary.get("lastEventName"),
        "eventDateTime": summary.get("lastEventDateTime"),
        "locationName": summary.get("lastEventLocationName"),
    }
    is_summarised = kit.text(last["eventCode"]) is not None
    events = kit.objects_at(piece, "events", where, rejections, required=not is_summarised)
    # the summary repeats the last event
    if not kit.as_list(piece.get("events")) and is_summarised:
        events = [(0, last)]
    for index, event in events:
        # the category is of the piece, and so of its last event alone
        is_last = (event.get("eventCode"), event.get("eventDateTime")) == (
            last["eventCode"],
            last["eventDateTime"],
        )
        raw = kit.Raw(code=kit.text(event.get("eventCode")))
        where_at, name = kit.place(city=event.get("locationName")), kit.text(event.get("eventName"))
        yield kit.Scan(
            where=f"{where}/events/{index}",
            raw=raw,
            meaning=_meaning(
                raw, name or "", kit.text(summary.get("statusCategory")) if is_last else None
            ),
            time=CLOCK.read(
                kit.text(event.get("eventDateTime")), where_at, received_at=received_at
            ),
            place=where_at,
            description=name,
        )


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read a known code; an unknown code may be read by the fields next to it."""
    return CODES.get(("event", raw.code or ""))


def _meaning(raw: kit.Raw, name: str, category: str | None) -> kit.Meaning:
    named = CODES.get(("name", kit.collapse(name).casefold()))
    return kit.finest(
        (raw.code, _reread(raw)),
        (name, named),
        (category, CODES.get(("category", (category or "").upper()))),
    )


CARRIER: Final = kit.Carrier(
    carrier_id="royalmail",
    name="Royal Mail",
    number_fields=("oneDBarcode|uniqueItemId", "mailPieceId"),
    normalizers={"1": normalize},
    formats=("Tracking API v2 JSON",),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
