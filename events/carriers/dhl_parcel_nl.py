"""DHL Parcel NL (DHL eCommerce Benelux): Track & Trace, as a list of parcels or one of them, with events or with the phases of a view.

A status decides; the category that it stands in, or the phase, is coarser. Each time is printed in UTC and as a local one with its
offset. DHL documents its Track & Trace Pusher without its body; one parcel by itself is taken for a push.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import ISO
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, object_at, objects, objects_at, recognised
from events.parsing.meanings import Meaning, finest, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("dhl_parcel_nl_codes.csv")
"""(level, code): of a `status`, of the `category` around it."""

CLOCK: Final = Clock(formats=ISO, default_zone="Europe/Amsterdam")

_ERROR_FIELDS: Final = frozenset({"error", "errors", "message", "key", "status", "title"})


class _Step(NamedTuple):
    where: str
    category: object
    status: object
    printed: object


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    for where, parcel in _parcels(read_json(body), rejections):
        scans = (_scan(step, received_at) for step in _steps(parcel, where, rejections))
        yield from with_estimate(
            readings_of(scans, text(parcel.get("barcode")), rejections), _estimate(parcel)
        )


def _parcels(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{index}", parcel) for index, parcel in objects(body, "", rejections)]
    )
    known = recognised(found, {"barcode"}, rejections)
    if not known and not any(_ERROR_FIELDS & parcel.keys() for _, parcel in found):
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "JSON, but no Track & Trace of DHL Parcel NL"
        )
    yield from known


def _steps(parcel: JsonObject, where: str, rejections: Rejections) -> Iterator[_Step]:
    if "events" in parcel:
        for index, event in objects_at(parcel, "events", where, rejections):
            yield _Step(
                f"{where}/events/{index}",
                event.get("category"),
                event.get("status"),
                event.get("localTimestamp") or event.get("timestamp"),
            )
        return
    pointer = f"{where}/view/phases"
    for number, phase in objects_at(
        object_at(parcel, "view", where, rejections), "phases", f"{where}/view", rejections
    ):
        for index, event in objects_at(phase, "events", f"{pointer}/{number}", rejections):
            yield _Step(
                f"{pointer}/{number}/events/{index}",
                phase.get("phase"),
                event.get("key"),
                event.get("timestamp"),
            )


def _scan(step: _Step, received_at: datetime) -> Scan:
    raw = Raw(type=text(step.category), code=text(step.status))
    return Scan(
        where=step.where,
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(text(step.printed), received_at=received_at),
    )


def _meaning(raw: Raw) -> Meaning:
    return finest(
        (raw.code, CODES.get(("status", raw.code or ""))),
        (raw.type, CODES.get(("category", raw.type or ""))),
    )


def _estimate(parcel: JsonObject) -> str | None:
    """Return the estimate of the last event that indicates one: a time, or the beginning of a frame."""
    events = parcel.get("events")
    for event in reversed(events if type(events) is list else []):
        if type(event) is dict:
            printed = (
                text(event.get("momentIndication"))
                or (text(event.get("plannedDeliveryTimeframe")) or "").partition("/")[0]
            )
            if printed:
                return estimate(printed, ISO)
    return None


CARRIER: Final = Carrier(
    carrier_id="dhl_parcel_nl",
    name="DHL Parcel NL",
    number_fields=("barcode",),
    normalizers={"1": normalize},
    formats=("Track & Trace JSON", "Track & Trace view JSON"),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
