"""DHL Parcel NL (DHL eCommerce Benelux): Track & Trace, as a list of parcels or a single parcel.

A parcel has events, or the phases of a view. A status decides; its category, or the phase, is
coarser. Each time is printed in UTC and as a local time with its offset. DHL documents its Track &
Trace Pusher without its body; a single parcel is taken for a push.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from events.carriers import kit

# (level, code): of a `status`, of the `category` around it.
CODES: Final = kit.meanings("dhl_parcel_nl_codes.csv")

CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="Europe/Amsterdam")

_ERROR_FIELDS: Final = frozenset({"error", "errors", "message", "key", "status", "title"})


class _Step(NamedTuple):
    where: str
    category: object
    status: object
    printed: object


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, parcel in _parcels(kit.read_json(body), rejections):
        scans = (_scan(step, received_at) for step in _steps(parcel, where, rejections))
        yield from kit.with_estimate(
            kit.readings_of(scans, kit.text(parcel.get("barcode")), rejections), _estimate(parcel)
        )


def _parcels(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{index}", parcel) for index, parcel in kit.objects(body, "", rejections)]
    )
    known = kit.recognised(found, {"barcode"}, rejections)
    if not known and not any(_ERROR_FIELDS & parcel.keys() for _, parcel in found):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no Track & Trace of DHL Parcel NL"
        )
    yield from known


def _steps(parcel: kit.JsonObject, where: str, rejections: kit.Rejections) -> Iterator[_Step]:
    if "events" in parcel:
        for index, event in kit.objects_at(parcel, "events", where, rejections):
            yield _Step(
                f"{where}/events/{index}",
                event.get("category"),
                event.get("status"),
                event.get("localTimestamp") or event.get("timestamp"),
            )
        return
    pointer = f"{where}/view/phases"
    for number, phase in kit.objects_at(
        kit.object_at(parcel, "view", where, rejections), "phases", f"{where}/view", rejections
    ):
        for index, event in kit.objects_at(phase, "events", f"{pointer}/{number}", rejections):
            yield _Step(
                f"{pointer}/{number}/events/{index}",
                phase.get("phase"),
                event.get("key"),
                event.get("timestamp"),
            )


def _scan(step: _Step, received_at: datetime) -> kit.Scan:
    raw = kit.Raw(type=kit.text(step.category), code=kit.text(step.status))
    return kit.Scan(
        where=step.where,
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(kit.text(step.printed), received_at=received_at),
    )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    return kit.finest(
        (raw.code, CODES.get(("status", raw.code or ""))),
        (raw.type, CODES.get(("category", raw.type or ""))),
    )


def _estimate(parcel: kit.JsonObject) -> str | None:
    """Return the estimate of the last event with one: a time, or the beginning of a frame."""
    events = parcel.get("events")
    for event in reversed(events if type(events) is list else []):
        if type(event) is dict:
            printed = (
                kit.text(event.get("momentIndication"))
                or (kit.text(event.get("plannedDeliveryTimeframe")) or "").partition("/")[0]
            )
            if printed:
                return kit.estimate(printed, kit.ISO)
    return None


CARRIER: Final = kit.Carrier(
    carrier_id="dhl_parcel_nl",
    name="DHL Parcel NL",
    number_fields=("barcode",),
    normalizers={"1": normalize},
    formats=("Track & Trace JSON", "Track & Trace view JSON"),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
