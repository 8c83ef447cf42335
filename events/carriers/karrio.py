"""Karrio: its webhook `tracker_updated`, and a single tracker. It aggregates many carriers.

It passes on the carrier's own code. An event has Karrio's status in later versions; before, the
tracker's status is that of its newest event, which is printed first, and an operator maps the older
events.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("karrio_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%Y-%m-%d[ %H:%M[:%S]]", "%Y-%m-%d %I:%M %p", "%Y-%m-%dT%H:%M:%S[%f][%z]"
    )
)

EVENT: Final = "tracker_updated"
_NUMBER: Final = "tracking_number"
_EVENTS: Final = "events"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    push = kit.read_json(body)
    if type(push) is not dict or not ({"event", "data"} <= push.keys() or _NUMBER in push):
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "JSON, but no webhook of Karrio")
    where, tracker = "", push
    if _NUMBER not in push:
        if not str(push.get("event")).startswith("tracker_"):
            rejections.note_nothing()
            return
        where, tracker = "/data", kit.object_at(push, "data", "", rejections)
    found = kit.readings_of(
        _scans(tracker, where, received_at, rejections),
        kit.text(tracker.get(_NUMBER)),
        rejections,
    )
    found = kit.carried_by(found, kit.text(tracker.get("carrier_name")))
    expected = kit.text(tracker.get("estimated_delivery"))
    yield from kit.with_estimate(found, kit.estimate(expected, kit.ISO))


def _scans(
    tracker: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    newest = kit.text(tracker.get("status"))
    journey = kit.Journey(home=kit.home_of(kit.text(tracker.get("carrier_name"))))
    for index, event in kit.objects_at(tracker, _EVENTS, where, rejections):
        carriers = kit.text(event.get("code"))
        status = kit.text(event.get("status")) or (newest if index == 0 else None)
        raw = kit.Raw(code=status, further=(carriers,) if carriers else ())
        at = kit.reported_place(kit.text(event.get("location")))
        day, clock = kit.text(event.get("date")), kit.text(event.get("time"))
        printed = kit.text(event.get("timestamp")) or (f"{day} {clock}" if clock else day)
        yield kit.Scan(
            where=f"{where}/{_EVENTS}/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(printed, at, received_at=received_at, journey=journey),
            place=at,
            description=kit.text(event.get("description")),
        )


CARRIER: Final = kit.Carrier(
    carrier_id="karrio",
    name="Karrio",
    number_fields=(_NUMBER,),
    normalizers={"1": normalize},
    formats=("tracker_updated webhook JSON", "Tracker JSON"),
    reread=_meaning,
    authentication=(kit.SharedHeader(header="X-Event-Id"),),
)
