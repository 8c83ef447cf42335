"""AfterShip: tracking webhooks (`msg`) and API answers. Every push repeats the history.

An answer holds one tracking, a page of them, or the last checkpoint. A checkpoint's code is
AfterShip's subtag, then the operating carrier's own code (`raw_tag`, which a carrier may use for
several meanings). An unknown subtag is read by its tag (`by_category`). Some senders print nulls
and booleans as text.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from events.carriers import kit

# (level, code): `subtag` or `tag`.
CODES: Final = kit.meanings("aftership_codes.csv")

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d[ %H:%M:%S]"
    )
)

# some senders print nulls as text
NULLS: Final = frozenset({"null", "none", "undefined"})
_NAMES: Final = frozenset({"tracking", "trackings", "checkpoint", "checkpoints"})
# Members with dates: those with scans, and the documents of a delivery (2026-07).
_DATED: Final = _NAMES | {"proof_of_delivery"}
_ESTIMATES: Final = (
    ("latest_estimated_delivery", "datetime"),
    ("courier_estimated_delivery_date", "estimated_delivery_date"),
    ("aftership_estimated_delivery_date", "estimated_delivery_date"),
)


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, tracking in _trackings(kit.read_json(body), rejections):
        yield from _tracking(tracking, where, received_at, rejections)


def _trackings(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is not dict:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "neither a webhook nor an answer of AfterShip"
        )
    wrapper = next((name for name in ("msg", "data") if type(body.get(name)) in (dict, list)), None)
    if wrapper is not None:
        for _, data in kit.objects_at(body, wrapper, "", rejections):
            yield from _unwrapped(data, f"/{wrapper}", rejections)
    elif _is_tracking(body):
        yield "", body
    elif not {"meta", "event", "msg", "data"} & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "neither a webhook nor an answer of AfterShip"
        )


def _unwrapped(
    data: kit.JsonObject, where: str, rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject]]:
    if _is_tracking(data):
        yield where, data
    # dated members without a known name are scans that would be lost in silence
    elif not _NAMES & data.keys() and not kit.says_nothing(data):
        rejections.add(where, kit.NO_CONTAINER)
    for name in ("tracking", "trackings"):
        many = type(data.get(name)) is list
        for index, tracking in kit.objects_at(
            data, name, where, rejections, required=False, but=_DATED
        ):
            yield f"{where}/{name}/{index}" if many else f"{where}/{name}", tracking


def _is_tracking(value: kit.JsonObject) -> bool:
    return "tracking_number" in value or "checkpoints" in value or "checkpoint" in value


def _tracking(
    tracking: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> list[kit.Reading]:
    # not AfterShip's own `id`: the operating carrier pushes the same parcel under this number
    number = _text(tracking.get("tracking_number"))
    name = "checkpoints" if "checkpoints" in tracking else "checkpoint"
    pointer = f"{where}/{name}"
    found = [
        (f"{pointer}/{index}", checkpoint)
        for index, checkpoint in kit.objects_at(
            tracking, name, where, rejections, required="tag" not in tracking, but=_DATED
        )
    ]
    # the tracking's own tag repeats the newest checkpoint: read only where there is none
    if not kit.as_list(tracking.get(name)):
        found = list(_rollup(tracking, where))
    journey, service = _journey(tracking), _text(tracking.get("shipment_type"))
    readings: list[kit.Reading] = []
    for at, checkpoint in found:
        raw, meaning = _said(checkpoint)
        somewhere = _place(checkpoint, journey)
        readings += kit.reading_of(
            kit.Scan(
                where=at,
                raw=raw,
                meaning=meaning,
                time=CLOCK.read(
                    _text(checkpoint.get("checkpoint_time")),
                    somewhere,
                    received_at=received_at,
                    journey=journey.at(meaning.status),
                ),
                place=somewhere,
                description=_text(checkpoint.get("message"))
                or _text(checkpoint.get("subtag_message")),
            ),
            number,
            rejections,
            service=service,
        )
    readings = kit.with_signer(
        # the operating carrier: its own push of the parcel is the same parcel then
        kit.carried_by(readings, _text(tracking.get("slug"))),
        kit.signer(_text(tracking.get("signed_by"))),
    )
    return kit.with_estimate(
        readings,
        kit.estimate(_estimate(tracking), CLOCK.formats),
        # of several estimates the last stated counts, in any order of arrival
        stamp=_text(tracking.get("updated_at")) or "",
    )


def _journey(tracking: kit.JsonObject) -> kit.Journey:
    """Return countries and addresses of the shipment, and the courier that AfterShip names."""
    return kit.Journey(
        _end(tracking, "origin"),
        _end(tracking, "destination"),
        kit.home_of(_text(tracking.get("slug"))),
    )


def _end(tracking: kit.JsonObject, end: str) -> kit.EventPlace:
    return kit.place(
        city=_text(tracking.get(f"{end}_city")),
        region=_text(tracking.get(f"{end}_state")),
        postal_code=_text(tracking.get(f"{end}_postal_code")),
        country=_text(tracking.get(f"{end}_country_iso3"))
        or _text(tracking.get(f"{end}_country_region")),
    )


def _rollup(tracking: kit.JsonObject, where: str) -> Iterator[tuple[str, kit.JsonObject]]:
    """Yield a tracking without checkpoints as a scan at its own time, if its tag has a meaning."""
    meaning = _said(tracking)[1]
    # `Pending` and `Expired` are states of AfterShip's search, not of the parcel
    if meaning.kind is kit.Kind.SCAN:
        yield (
            where,
            {
                "tag": tracking.get("tag"),
                "subtag": tracking.get("subtag"),
                "checkpoint_time": tracking.get("updated_at"),
            },
        )


def _said(checkpoint: kit.JsonObject) -> tuple[kit.Raw, kit.Meaning]:
    tag, subtag, raw_tag = (_text(checkpoint.get(name)) for name in ("tag", "subtag", "raw_tag"))
    # the carrier's code is kept but not read: a carrier may use it for several meanings
    raw = kit.Raw(code=subtag or tag, reason=raw_tag)
    # a subtag is its tag and a number, `Delivered_001`
    category = tag or (subtag or "").partition("_")[0]
    return raw, kit.finest((raw.code, _reread(raw)), (category, CODES.get(("tag", category))))


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read a known subtag or tag.

    An unknown subtag is read by its tag, which the raw fields lack.
    """
    return CODES.get(("subtag", raw.code or "")) or CODES.get(("tag", raw.code or ""))


def _place(checkpoint: kit.JsonObject, journey: kit.Journey) -> kit.EventPlace:
    return kit.reported_place(
        _text(checkpoint.get("location")),
        city=checkpoint.get("city"),
        region=checkpoint.get("state"),
        postal_code=_zip(checkpoint),
        country=_text(checkpoint.get("country_iso3"))
        or _text(checkpoint.get("country_region"))
        or checkpoint.get("country_name"),
        of_shipment=(journey.origin.country, journey.destination.country),
    )


def _zip(checkpoint: kit.JsonObject) -> Any:  # noqa: ANN401 - whatever is printed
    return checkpoint.get("zip") or checkpoint.get("postal_code")


def _estimate(tracking: kit.JsonObject) -> str | None:
    """Return the carrier's estimate, else AfterShip's."""
    expected = _text(tracking.get("expected_delivery"))
    return expected or next(
        (
            found
            for name, field in _ESTIMATES
            if (found := _text(kit.child(tracking, name).get(field)))
        ),
        None,
    )


def _text(value: object) -> str | None:
    return kit.text_unless(value, NULLS)


CARRIER: Final = kit.Carrier(
    carrier_id="aftership",
    name="AfterShip",
    number_fields=("tracking_number",),
    normalizers={"1": normalize},
    formats=("Tracking webhook", "Tracking API JSON"),
    reread=_reread,
    authentication=(
        kit.Hmac(header="aftership-hmac-sha256", encoding="base64"),
        kit.Hmac(header="as-signature-hmac-sha256", encoding="base64"),
        kit.Hmac(header="am-webhook-signature", encoding="base64"),
        kit.Hmac(header="am-webhook-signature", encoding="base64", prefix="hmac-sha256="),
    ),
)
