"""Sendcloud: webhooks of a parcel's present status, and tracking v3 (`sendcloud_events`).

The webhook of an integration has no history and no place. A status holds since the carrier changed
it (`carrier_status_change_timestamp`), else since the push. Missing values are printed as `false`.
There are parcels without a tracking number yet, and webhooks about other subjects than a parcel's
status.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit, sendcloud_events

CODES: Final = kit.meanings("sendcloud_codes.csv")

# A larger epoch is in milliseconds.
SECONDS_MAX: Final = 10**11

# Prefix of the actions that are about the shop, not about a parcel.
_OF_INTEGRATIONS: Final = "integration_"
_ENVELOPE: Final = frozenset({"action", "parcel", "timestamp", "error", "errors"})


@kit.normalizer
def normalize(body: bytes, received_at: datetime, rejections: kit.Rejections) -> list[kit.Reading]:
    push = kit.read_object(body, otherwise="JSON, but nothing of Sendcloud")
    if not push:
        return []
    return _readings(push, received_at, rejections)


def _readings(
    push: kit.JsonObject, received_at: datetime, rejections: kit.Rejections
) -> list[kit.Reading]:
    if push.get("event_type") == sendcloud_events.PARCEL_CREATED:
        return sendcloud_events.readings_of_parcel(
            kit.object_at(push, "data", "", rejections), received_at, rejections
        )
    # version 3 comes to the same URL as the webhooks of an integration
    if "event_type" in push and "data" in push:
        return sendcloud_events.readings_of_push(kit.child(push, "data"), received_at, rejections)
    if "tracking_numbers" in push:
        return sendcloud_events.readings_of_answer(push, received_at, rejections)
    if not _ENVELOPE & push.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no webhook of Sendcloud"
        )
    if (kit.text(push.get("action")) or "").startswith(_OF_INTEGRATIONS):
        rejections.note_nothing()
        return []
    parcel = kit.object_at(push, "parcel", "", rejections)
    service = kit.text(kit.child(parcel, "shipment").get("name"))
    return kit.readings_of(
        _scans(push, parcel, received_at, rejections),
        kit.text(parcel.get("tracking_number")),
        rejections,
        service=service,
    )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    return CODES.get((raw.code or "",)) or sendcloud_events.meaning(raw)


def _scans(
    push: kit.JsonObject, parcel: kit.JsonObject, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    status = kit.object_at(parcel, "status", "/parcel", rejections)
    if not status:
        return
    code = kit.text(status.get("id"))
    raw = kit.Raw(code=code)
    yield kit.Scan(
        where="/parcel/status",
        raw=raw,
        meaning=_meaning(raw),
        time=_time(
            # the status holds since the carrier changed it; the push may be much later
            kit.text(push.get("carrier_status_change_timestamp"))
            or kit.text(push.get("timestamp")),
            received_at,
        ),
        description=kit.text(status.get("message")),
    )


def _time(printed: str | None, received_at: datetime) -> kit.PrintedTime | None:
    # `isdigit` alone takes superscripts, which `int` refuses
    if printed is not None and not (printed.isascii() and printed.isdigit()):
        return None
    value = None if printed is None else int(printed[:20])
    return kit.read_epoch(
        value, milliseconds=value is not None and value > SECONDS_MAX, received_at=received_at
    )


CARRIER: Final = kit.Carrier(
    carrier_id="sendcloud",
    name="Sendcloud",
    number_fields=("parcel.tracking_number", "tracking_numbers.tracking_number"),
    normalizers={"1": normalize},
    formats=(
        "Parcel webhook JSON",
        "v3 parcel event JSON",
        "v3 created parcel JSON",
        "v3 parcel tracking JSON",
    ),
    reread=_meaning,
    authentication=(kit.Hmac(header="Sendcloud-Signature"), kit.ShipperChoice(default=())),
)
