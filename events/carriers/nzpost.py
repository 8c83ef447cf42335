"""NZ Post: webhooks and answers of ParcelTrack, version 3 and the field names before it.

Times are those of New Zealand; a few systems print an offset behind them. A code decides, or the words of the status where there is none.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.formats import ISO
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child, objects_at, recognised
from events.parsing.meanings import Meaning, finest, meanings, texts_of
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock
from events.spelling import spelled

_TABLE: Final = meanings("nzpost_codes.csv")
CODES: Final = {(level, spelled(word)): meaning for (level, word), meaning in _TABLE.items()}
"""(level, code): of a `code`, of the words of a `status` in one spelling."""

CLOCK: Final = Clock(formats=ISO, default_zone="Pacific/Auckland")

_EVENTS: Final = "tracking_events"
_ERROR_FIELDS: Final = frozenset({"errors", "error", "message", "success"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    for where, parcel in _parcels(read_json(body), "", rejections):
        yield from readings_of(
            _scans(parcel, where, received_at, rejections),
            text(parcel.get("tracking_reference")),
            rejections,
            service=text(parcel.get("service")),
        )


def _parcels(body: object, where: str, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is not dict:
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no tracking of NZ Post")
    if _EVENTS in body:
        yield where, body
    elif "results" in body:
        results = objects_at(body, "results", where, rejections)
        yield from recognised(
            ((f"{where}/results/{index}", parcel) for index, parcel in results),
            {_EVENTS},
            rejections,
        )
    elif not _ERROR_FIELDS & body.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no tracking of NZ Post")


def _scans(
    parcel: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, event in objects_at(parcel, _EVENTS, where, rejections):
        status = text(event.get("status_description")) or text(event.get("status"))
        raw = Raw(
            type=status,
            code=text(event.get("event_edifact_code")) or text(event.get("edifact_code")),
        )
        at = place(country="NZ", facility=event.get("depot_name"))
        printed = text(event.get("event_datetime")) or text(event.get("date_time"))
        yield Scan(
            where=f"{where}/{_EVENTS}/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(printed, received_at=received_at),
            place=at if text(event.get("depot_name")) else place(),
            description=text(event.get("event_description"))
            or text(event.get("description"))
            or status,
            signed_by=child(event, "signed_by").get("name"),
        )


def _meaning(raw: Raw) -> Meaning:
    return finest(
        (raw.code, CODES.get(("code", spelled(raw.code or "")))),
        (raw.type, CODES.get(("status", spelled(raw.type or "")))),
    )


CARRIER: Final = Carrier(
    carrier_id="nzpost",
    name="NZ Post",
    number_fields=("tracking_reference",),
    normalizers={"1": normalize},
    formats=("ParcelTrack webhook JSON", "ParcelTrack JSON"),
    reread=_meaning,
    texts=texts_of(_TABLE),
    authentication=(ShipperChoice(),),
)
