"""EasyPost: the Tracker object, alone (API) or as the `result` of a webhook event.

Every push repeats the whole history. A scan's code is EasyPost's status and detail, then the code
of the operating carrier. The status decides; a detail refines it where EasyPost documents the
detail, and only towards trouble where the status is already finer than `in_transit`. An unknown
detail leaves the status as it is (`by_category`). Times are UTC.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# (level, code): `status`, or of the details `movement`, `trouble` and `silent` (no effect).
CODES: Final = kit.meanings("easypost_codes.csv")

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d")
)

# Statuses that every documented detail may refine.
REFINED: Final = frozenset({"in_transit", "unknown"})

# Statuses that no detail changes.
DECISIVE: Final = frozenset({"available_for_pickup", "cancelled", "delivered", "return_to_sender"})

AMBIGUOUS: Final = "delivery_exception"
ATTEMPTED: Final = kit.Meaning(kit.Kind.SCAN, kit.Status.DELIVERY_ATTEMPTED)
# Messages of an `AMBIGUOUS` detail that say that the parcel was tried; EasyPost has no detail for
# it.
ATTEMPTS: Final = frozenset(
    {
        "delivery attempted",
        "delivery attempted - no access to delivery location",
        "attempted delivery",
        "customer not available or business closed",
        "notice left",
        "notice left (no authorized recipient available)",
        "notice left (business closed)",
        "notice left (no secure location available)",
        "notice left (receptacle full/item oversized)",
    }
)

_ERROR_FIELDS: Final = frozenset({"error", "errors", "message"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Yield the events of a webhook or tracker; other webhooks hold no scans."""
    for where, tracker in _trackers(kit.read_json(body), rejections):
        yield from _tracker(tracker, where, received_at, rejections)


def _trackers(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is not dict:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "neither an event nor a tracker of EasyPost"
        )
    if _is_tracker(body):
        yield "", body
    elif "result" in body:
        result = kit.object_at(body, "result", "", rejections)
        if _is_tracker(result):
            yield "/result", result
        else:
            _note_other(result, rejections)
    elif "trackers" in body:
        for index, tracker in kit.objects_at(body, "trackers", "", rejections):
            yield f"/trackers/{index}", tracker
    elif body.get("object") is not None:
        _note_other(body, rejections)
    elif not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "neither an event nor a tracker of EasyPost"
        )


def _note_other(value: kit.JsonObject, rejections: kit.Rejections) -> None:
    """Note an event that is no tracker, unless it holds dated objects, which may be a
    tracker of another form.
    """
    if kit.text(value.get("object")) not in (None, "Event") or not kit.holds_dated(value):
        rejections.note_nothing()


def _is_tracker(value: kit.JsonObject) -> bool:
    return (
        value.get("object") == "Tracker"
        or "tracking_details" in value
        or ("tracking_code" in value and "status" in value)
    )


def _tracker(
    tracker: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> list[kit.Reading]:
    details = tracker.get("tracking_details")
    found = kit.objects_at(
        tracker, "tracking_details", where, rejections, required="status" not in tracker
    )
    scans = [(f"{where}/tracking_details/{at}", scan) for at, scan in found]
    # the tracker's own status repeats the newest detail
    if not kit.as_list(details):
        scans = list(_rollup(tracker, where))
    number = kit.text(tracker.get("tracking_code"))
    readings = kit.readings_of(
        (_scan(scan, pointer, received_at) for pointer, scan in scans),
        number,
        rejections,
        service=_service(tracker),
    )
    readings = kit.with_signer(
        kit.carried_by(readings, kit.text(tracker.get("carrier"))),
        kit.signer(tracker.get("signed_by")),
    )
    expected = kit.estimate(kit.text(tracker.get("est_delivery_date")), CLOCK.formats)
    return kit.with_estimate(readings, expected, stamp=kit.text(tracker.get("updated_at")) or "")


def _service(tracker: kit.JsonObject) -> str | None:
    return kit.text(kit.child(tracker, "carrier_detail").get("service"))


def _rollup(tracker: kit.JsonObject, where: str) -> Iterator[tuple[str, kit.JsonObject]]:
    """Yield a tracker without scans as a scan at its own time, where its status has a meaning."""
    meaning = CODES.get(("status", kit.text(tracker.get("status")) or ""))
    if meaning is not None and meaning.kind is kit.Kind.SCAN:
        yield (
            where,
            {
                # the tracker's message is not a scan's
                **tracker,
                "datetime": tracker.get("updated_at"),
                "message": None,
                "description": None,
            },
        )


def _scan(scan: kit.JsonObject, pointer: str, received_at: datetime) -> kit.Scan:
    location = kit.child(scan, "tracking_location")
    where_at = kit.reported_place(
        city=location.get("city"),
        region=location.get("state"),
        postal_code=location.get("zip"),
        country=location.get("country"),
    )
    status, detail, carrier_code = (
        kit.text(scan.get("status")),
        kit.text(scan.get("status_detail")),
        kit.text(scan.get("carrier_code")),
    )
    words = kit.text(scan.get("message"))
    # then the operating carrier's code is all that there is, and EasyPost publishes no list of
    # those
    silent = status is None and detail is None
    return kit.Scan(
        where=pointer,
        raw=kit.Raw(code=carrier_code)
        if silent
        else kit.Raw(type=status if detail else None, code=detail or status, reason=carrier_code),
        meaning=kit.UNMAPPED if silent else _meaning(status, detail, (words or "").casefold()),
        time=CLOCK.read(kit.text(scan.get("datetime")), where_at, received_at=received_at),
        place=where_at,
        description=words or kit.text(scan.get("description")),
    )


def _meaning(status: str | None, detail: str | None, words: str) -> kit.Meaning:
    by_status = CODES.get(("status", status or "unknown"))
    if by_status is None:
        return kit.UNMAPPED
    # a detail must not take a delivery or a return back
    if detail is None or status in DECISIVE or ("silent", detail) in CODES:
        return by_status
    trouble = CODES.get(("trouble", detail))
    if trouble is not None:
        # EasyPost has no detail for an attempt: its message alone says so
        return ATTEMPTED if detail == AMBIGUOUS and words in ATTEMPTS else trouble
    movement = CODES.get(("movement", detail))
    if movement is None:
        return by_status.of_category()
    # `out_for_delivery` with a detail of movement stays what it is: the status is the finer
    return movement if status is None or status in REFINED else by_status


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read by status and code.

    A `delivery_exception` is read by its message, and a code without a status may be
    the operating carrier's.
    """
    if raw.code == AMBIGUOUS or (raw.type is None and ("status", raw.code or "") not in CODES):
        return None
    return _meaning(raw.code, None, "") if raw.type is None else _meaning(raw.type, raw.code, "")


CARRIER: Final = kit.Carrier(
    carrier_id="easypost",
    name="EasyPost",
    number_fields=("tracking_code",),
    normalizers={"1": normalize},
    formats=("Webhook event with a Tracker", "Tracker JSON"),
    reread=_reread,
    authentication=(
        kit.Hmac(header="X-Hmac-Signature", prefix="hmac-sha256-hex=", nfkd=True),
        kit.ShipperChoice(default=()),
    ),
)
