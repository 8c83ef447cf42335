"""17TRACK: pushes and answers of API v2 (words as codes) and of v1 (one-letter keys).

Every push repeats the whole history. In v2 an event has a sub-status, else a stage; an undocumented
sub-status is read by the status before its `_`. In v1 only the package has a code (`e`): it belongs
to the newest event; the older events are facts without a status. Times of v1 are wall clocks,
whatever its epoch fields claim.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# (field, code): `sub_status`, `stage` and `status` of v2, `e` of v1, and the texts of v1 that say
# more than their `e`, in lower case.
CODES: Final = kit.meanings("seventeentrack_codes.csv")

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S]]", "%Y-%m-%dT%H:%M[%z]"
    )
)

# Prefix of a v1 package's code in an event's code.
# marks that the code is the package's, not the event's
V1: Final = "e="

# no dead letter: v1 has no codes for older events, and an unknown text of theirs moves no status
UNTOLD: Final = kit.Meaning(kit.Kind.INFO)
# carriers in succession have a list each
_V1_EVENTS: Final = ("z1", "z2", "z9")
# repeats the newest event of the other lists
_NEWEST_ONLY: Final = "z0"
_V1_LISTS: Final = frozenset({*_V1_EVENTS, _NEWEST_ONLY})
_STOPPED: Final = "TRACKING_STOPPED"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Yield the events of a push or answer.

    Notices (`TRACKING_STOPPED`) and rejected numbers hold no scans.
    """
    for where, package in _packages(kit.read_json(body), rejections):
        # v1 and v2 come to the same URL; only v1 has a `track`
        if "track" in package:
            yield from _package_v1(package, where, received_at, rejections)
        else:
            yield from _package(package, where, received_at, rejections)


def _packages(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is not dict or not ("data" in body or "event" in body or "code" in body):
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "no push or answer of 17TRACK")
    # 17TRACK no longer follows the number: that says nothing about the parcel
    if body.get("event") == _STOPPED:
        rejections.note_nothing()
        return
    for index, data in kit.objects_at(body, "data", "", rejections):
        where = f"/data/{index}" if type(body["data"]) is list else "/data"
        if "number" in data:
            yield where, data
        for at, package in kit.objects_at(
            data, "accepted", where, rejections, required="number" not in data
        ):
            yield f"{where}/accepted/{at}", package


def _package(
    package: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> list[kit.Reading]:
    info = kit.object_at(package, "track_info", where, rejections)
    number = kit.text(package.get("number"))
    newest, latest = kit.child(info, "latest_event"), kit.child(info, "latest_status")
    readings: list[kit.Reading] = []
    shipping = kit.child(info, "shipping_info")
    journey = kit.Journey(
        _place_at(kit.child(shipping, "shipper_address")),
        _place_at(kit.child(shipping, "recipient_address")),
    )
    tracking = kit.object_at(
        info, "tracking", f"{where}/track_info", rejections, required=not latest
    )
    pointer = f"{where}/track_info/tracking/providers"
    for at, provider in kit.objects_at(
        tracking, "providers", f"{where}/track_info/tracking", rejections
    ):
        for index, event in kit.objects_at(provider, "events", f"{pointer}/{at}", rejections):
            readings += _event(
                event,
                newest,
                number=number,
                pointer=f"{pointer}/{at}/events/{index}",
                received_at=received_at,
                journey=journey._replace(
                    # of each provider, not of the package: a parcel changes carriers at the border
                    home=kit.home_of(kit.text(kit.child(provider, "provider").get("name")))
                ),
                service=kit.text(provider.get("service_type")),
                rejections=rejections,
            )
    # the newest event repeats one of a provider's list: it counts where the lists are left out
    if not readings and newest:
        readings += _event(
            newest,
            newest,
            number=number,
            pointer=f"{where}/track_info/latest_event",
            received_at=received_at,
            journey=journey,
            rejections=rejections,
        )
    # not where an event was rejected: the status of the package would hide that it was lost
    if not readings and not newest:
        readings += _rollup(latest, number, where, received_at, rejections)
    readings = kit.carried_by(readings, _only_provider(tracking))
    window = kit.child(info, "time_metrics", "estimated_delivery_date")
    return kit.with_estimate(
        readings,
        kit.estimate(kit.text(window.get("to")) or kit.text(window.get("from")), CLOCK.formats),
    )


def _only_provider(tracking: kit.JsonObject) -> str | None:
    """Return the name of the carrier; None where several carry the parcel in succession."""
    names = {
        kit.text(kit.child(provider, "provider").get("name"))
        for provider in kit.as_list(tracking.get("providers"))
        if type(provider) is dict
    }
    # with several no single number belongs to all of them
    return next(iter(names)) if len(names) == 1 else None


def _event(
    event: kit.JsonObject,
    newest: kit.JsonObject,
    *,
    number: str | None,
    pointer: str,
    received_at: datetime,
    rejections: kit.Rejections,
    journey: kit.Journey,
    service: str | None = None,
) -> tuple[kit.Reading, ...]:
    # the sub-status is the finer of both
    raw = kit.Raw(code=kit.text(event.get("sub_status")) or kit.text(event.get("stage")))
    where, meaning = (
        _place(event, journey),
        _meaning(raw) if raw.code else _by_text(kit.text(event.get("description"))),
    )
    return kit.reading_of(
        kit.Scan(
            where=pointer,
            raw=raw,
            meaning=meaning,
            time=_time(
                event, _zone_place(event, newest, journey), received_at, journey.at(meaning.status)
            ),
            place=where,
            description=kit.text(event.get("description")),
        ),
        number,
        rejections,
        service=service,
    )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    code = raw.code or ""
    status = code.partition("_")[0]
    return kit.finest(
        (code, CODES.get(("sub_status", code)) or CODES.get(("stage", code))),
        (status, CODES.get(("status", status))),
    )


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read v2 by its codes; in v1 the texts count."""
    # the text, which v1's meaning depends on, is sealed
    return None if raw.code is None or raw.code.startswith(V1) else _meaning(raw)


def _place(event: kit.JsonObject, journey: kit.Journey) -> kit.EventPlace:
    address = kit.child(event, "address")
    if any(address.get(name) for name in ("city", "state", "postal_code")):
        return _place_at(address)
    of_shipment = (journey.origin.country, journey.destination.country)
    return kit.reported_place(
        kit.text(event.get("location")), country=address.get("country"), of_shipment=of_shipment
    )


def _place_at(address: kit.JsonObject) -> kit.EventPlace:
    return kit.reported_place(
        city=address.get("city"),
        region=address.get("state"),
        postal_code=address.get("postal_code"),
        country=address.get("country"),
    )


# for the zone only: as the scan's place it would differ from push to push
def _zone_place(
    event: kit.JsonObject, newest: kit.JsonObject, journey: kit.Journey
) -> kit.EventPlace:
    """Return the place that decides the zone: the newest event has an address more often than the
    same event in the list.
    """
    same = all(
        event.get(name) == newest.get(name)
        for name in ("description", "location", "time_raw", "time_iso")
    )
    return _place(newest if same else event, journey)


def _time(
    event: kit.JsonObject, where: kit.EventPlace, received_at: datetime, journey: kit.Journey
) -> kit.PrintedTime | None:
    iso = kit.text(event.get("time_iso"))
    # before `time_utc`, which has lost the wall clock that enters the id
    if iso is not None:
        return CLOCK.read(iso, where, received_at=received_at, journey=journey)
    printed = kit.child(event, "time_raw")
    date, time = kit.text(printed.get("date")), kit.text(printed.get("time"))
    # in UTC only where nothing else is printed: the id has the wall clock
    if date is None:
        return CLOCK.read(
            kit.text(event.get("time_utc")), where, received_at=received_at, journey=journey
        )
    at = f"{date} {time}" if time else date
    return CLOCK.read_with_offset(
        at, kit.text(printed.get("timezone")), where, received_at=received_at, journey=journey
    )


def _rollup(
    latest: kit.JsonObject,
    number: str | None,
    where: str,
    received_at: datetime,
    rejections: kit.Rejections,
) -> tuple[kit.Reading, ...]:
    """Read a package without events as a scan without a time, where its status has a meaning."""
    raw = kit.Raw(code=kit.text(latest.get("sub_status")) or kit.text(latest.get("status")))
    meaning = _meaning(raw)
    # `NotFound` and `Expired` are states of 17TRACK's search, not of the parcel
    if meaning.kind is not kit.Kind.SCAN:
        return ()
    return kit.reading_of(
        kit.Scan(
            where=f"{where}/track_info/latest_status",
            raw=raw,
            meaning=meaning,
            time=CLOCK.read(None, received_at=received_at),
        ),
        number,
        rejections,
    )


def _package_v1(
    package: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> list[kit.Reading]:
    track = kit.child(package, "track")
    number, code = kit.text(package.get("number")), kit.text(track.get("e"))
    found = [
        (f"{where}/track/{name}/{index}", event)
        for name in _V1_EVENTS
        for index, event in kit.objects_at(
            track, name, f"{where}/track", rejections, required=False, but=_V1_LISTS
        )
    ]
    newest = kit.child(track, _NEWEST_ONLY)
    if not found and kit.as_list(track.get(_NEWEST_ONLY)):
        found = [(f"{where}/track/{_NEWEST_ONLY}", newest)]
    readings: list[kit.Reading] = []
    for pointer, event in found:
        description = kit.text(event.get("z"))
        # compared whole: two carriers' lists have no common order, so no position tells the newest
        is_newest = not newest or event == newest
        meaning = _by_text(description)
        # the text first: the package's code is coarse and covers a step only as long as it is the
        # newest
        if meaning is UNTOLD and is_newest:
            meaning = CODES.get(("e", code or ""), kit.UNMAPPED)
        # `d` is the finer place where both are printed
        at = kit.place(city=kit.text(event.get("d")) or event.get("c"))
        readings += kit.reading_of(
            kit.Scan(
                where=pointer,
                # an older event has no code: it had one in the push in which it was the newest
                raw=kit.Raw(code=f"{V1}{code}" if is_newest and code else None),
                meaning=meaning,
                time=CLOCK.read(kit.text(event.get("a")), at, received_at=received_at),
                place=at,
                description=description,
            ),
            number,
            rejections,
        )
    return readings


def _by_text(description: str | None) -> kit.Meaning:
    """Read an event without a stage by its text, where that is known: 17TRACK has no name for the
    step.
    """
    return CODES.get(("text", _headline(description)), UNTOLD)


def _headline(description: str | None) -> str:
    """Return the words before the arrow of
    `Shipping Label Created -> A shipping label has been ...`, in lower case.
    """
    return (description or "").partition(" -> ")[0].strip().casefold()


CARRIER: Final = kit.Carrier(
    carrier_id="17track",
    name="17TRACK",
    number_fields=("data.number", "accepted.number", "rejected.number"),
    normalizers={"1": normalize},
    formats=("API v2 push and answer", "API v1 push"),
    reread=_reread,
    authentication=(
        kit.Sha256Concat(header="sign"),
        kit.Sha256InBody(),
        kit.ShipperChoice(default=()),
    ),
)
