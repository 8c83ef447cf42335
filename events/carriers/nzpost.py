"""NZ Post: webhooks and answers of ParcelTrack, version 3 and the field names before it.

Times are those of New Zealand; a few systems print an offset behind them. A code decides, or the
words of the status where there is none.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

_TABLE: Final = kit.meanings("nzpost_codes.csv")
# (level, code): of a `code`, or of the words of a `status` in normalised spelling.
CODES: Final = {(level, kit.spelled(word)): meaning for (level, word), meaning in _TABLE.items()}

CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="Pacific/Auckland")

_EVENTS: Final = "tracking_events"
_ERROR_FIELDS: Final = frozenset({"errors", "error", "message", "success"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, parcel in _parcels(kit.read_json(body), "", rejections):
        yield from kit.readings_of(
            _scans(parcel, where, received_at, rejections),
            kit.text(parcel.get("tracking_reference")),
            rejections,
            service=kit.text(parcel.get("service")),
        )


def _parcels(
    body: object, where: str, rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is not dict:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of NZ Post"
        )
    if _EVENTS in body:
        yield where, body
    elif "results" in body:
        results = kit.objects_at(body, "results", where, rejections)
        yield from kit.recognised(
            ((f"{where}/results/{index}", parcel) for index, parcel in results),
            {_EVENTS},
            rejections,
        )
    elif not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of NZ Post"
        )


def _scans(
    parcel: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(parcel, _EVENTS, where, rejections):
        status = kit.text(event.get("status_description")) or kit.text(event.get("status"))
        raw = kit.Raw(
            type=status,
            code=kit.text(event.get("event_edifact_code")) or kit.text(event.get("edifact_code")),
        )
        at = kit.place(country="NZ", facility=event.get("depot_name"))
        printed = kit.text(event.get("event_datetime")) or kit.text(event.get("date_time"))
        yield kit.Scan(
            where=f"{where}/{_EVENTS}/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(printed, received_at=received_at),
            # without a depot there is no place: the parcel may be abroad
            place=at if kit.text(event.get("depot_name")) else kit.place(),
            description=kit.text(event.get("event_description"))
            or kit.text(event.get("description"))
            or status,
            signed_by=kit.child(event, "signed_by").get("name"),
        )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    return kit.finest(
        (raw.code, CODES.get(("code", kit.spelled(raw.code or "")))),
        (raw.type, CODES.get(("status", kit.spelled(raw.type or "")))),
    )


CARRIER: Final = kit.Carrier(
    carrier_id="nzpost",
    name="NZ Post",
    number_fields=("tracking_reference",),
    normalizers={"1": normalize},
    formats=("ParcelTrack webhook JSON", "ParcelTrack JSON"),
    reread=_meaning,
    texts=kit.texts_of(_TABLE),
    authentication=(kit.ShipperChoice(),),
)
