"""ClickPost: its status webhook, one scan. A return order that has no waybill yet belongs to the forward waybill, and moves nothing there.

The code is ClickPost's own; the courier's is retained as well. Times are Indian, whatever their `Z` claims.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, SharedHeader, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child, objects
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("clickpost_codes.csv")
_meaning: Final = by_code(CODES)
CLOCK: Final = Clock(
    formats=TimeFormats(
        "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S[%f]]]", "%Y-%m-%dT%H:%M[%z]"
    ),
    default_zone="Asia/Kolkata",
    country="IN",
    trust_offset=False,
)
_KNOWN: Final = frozenset({"waybill", "clickpost_status_code"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one webhook."""
    for where, push in _pushes(read_json(body), rejections):
        additional = child(push, "additional")
        code, courier = text(push.get("clickpost_status_code")), text(push.get("status"))
        raw = Raw(code=code, further=(courier,) if courier else ())
        found = reading_of(
            Scan(
                where=where,
                raw=raw,
                meaning=_meaning(raw),
                time=CLOCK.read(text(push.get("timestamp")), received_at=received_at),
                place=place(city=push.get("location")),
                description=text(push.get("remark"))
                or text(push.get("clickpost_status_description")),
            ),
            text(push.get("waybill")) or text(additional.get("forward_awb")),
            rejections,
        )
        expected = text(additional.get("courier_partner_edd"))
        yield from with_estimate(found, estimate(expected, CLOCK.formats))


def _pushes(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{at}", push) for at, push in objects(body, "", rejections)]
    )
    if not any(_KNOWN & push.keys() for _, push in found):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no status of ClickPost")
    yield from found


CARRIER: Final = Carrier(
    carrier_id="clickpost",
    name="ClickPost",
    number_fields=("waybill", "additional.forward_awb"),
    normalizers={"1": normalize},
    formats=("Status webhook",),
    reread=_meaning,
    authentication=(SharedHeader(header="webhook_key"), ShipperChoice(default=())),
)
