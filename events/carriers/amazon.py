"""Amazon: Shipping, SP-API tracking milestones, and packages of Multi-Channel Fulfillment.

Shipping (API v1 and v2) and packages (getPackageTrackingDetails) have codes of events;
milestones come as an answer or a notification, also as SQS and SNS wrap it. `Delivered` on the
leg `RETURNS` means that the sender has it. An order that Amazon fulfils has Amazon's own number
(`aftn`), other shipments the carrier's, freight its bill of lading or container. Promised dates
are estimates, never events.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# (leg, code): the leg only where it makes a difference.
CODES: Final = kit.meanings("amazon_codes.csv")

# Descriptions of the events of Multi-Channel Fulfillment, for a code that is not known.
TEXTS: Final = kit.meanings("amazon_texts.csv")

_by_text = kit.by_sentence({words: meaning for (words,), meaning in TEXTS.items()})

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d")
)
# Fields that name a shipment of freight without a parcel number, the most definite first.
FREIGHT_NUMBERS: Final = ("houseBillOfLadingNumber", "containerNumber", "acsin")

_PACKAGE: Final = frozenset({"trackingEvents", "TrackingEvents", "packageNumber", "PackageNumber"})
# Members by which an object is recognised as a shipment.
_SHIPMENT: Final = _PACKAGE | {"eventHistory", "trackingId", "milestoneHistory", "latestMilestone"}

# Code of a package that was lost or destroyed, without distinction.
UNDELIVERABLE: Final = "UNDELIVERABLE"

NULLS: Final = frozenset({"null", "none"})
WRAPPERS: Final = (
    "payload",
    "Payload",
    "detail",
    "shipmentTrackingMilestoneChangedNotification",
    "ShipmentTrackingMilestoneChangedNotification",
    "trackingDetail",
    "trackingDetails",
)
_UNKNOWN: Final = "no tracking of Amazon"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, shipment in _shipments(kit.read_json(body), "", rejections):
        if _PACKAGE & shipment.keys():
            yield from _package(shipment, where, received_at, rejections)
        elif "eventHistory" in shipment or "trackingId" in shipment:
            yield from _shipping(shipment, where, received_at, rejections)
        else:
            yield from _milestones(shipment, where, received_at, rejections)


def _shipments(
    body: object, where: str, rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject]]:
    """Yield the shipments with their pointers, whatever wraps them; the message of an SNS
    envelope is JSON in a string.
    """
    for at, member in kit.members(body, where, rejections, unknown=_UNKNOWN):
        wrapper = next((name for name in WRAPPERS if type(member.get(name)) in (dict, list)), None)
        # before the wrappers: a shipment may have a member that is called like one of them
        if _SHIPMENT & member.keys():
            yield at, member
        elif wrapper is not None:
            yield from _shipments(member[wrapper], f"{at}/{wrapper}", rejections)
        # only at the top: an SNS envelope inside another is nobody's format
        elif type(member.get("Message")) is str and not at:
            yield from _shipments(
                kit.read_json(member["Message"].encode("utf-8", "replace")), "/Message", rejections
            )
        elif not {"errors", "notificationType"} & member.keys():
            raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, _UNKNOWN)


def _shipping(
    shipment: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> list[kit.Reading]:
    number, summary = _text(shipment.get("trackingId")), kit.child(shipment, "summary")
    pointer = f"{where}/eventHistory"
    readings: list[kit.Reading] = []
    for index, event in kit.objects_at(
        shipment, "eventHistory", where, rejections, required=not summary
    ):
        raw = kit.Raw(code=_text(event.get("eventCode")), reason=_text(event.get("shipmentType")))
        at = _place(kit.child(event, "location"))
        readings += kit.reading_of(
            kit.Scan(
                where=f"{pointer}/{index}",
                raw=raw,
                meaning=_meaning(raw),
                time=CLOCK.read(_text(event.get("eventTime")), at, received_at=received_at),
                place=at,
            ),
            number,
            rejections,
        )
    status = _text(summary.get("status"))
    rollup = CODES.get(("", status or ""))
    if (
        not kit.as_list(shipment.get("eventHistory"))
        and rollup is not None
        and rollup.kind is kit.Kind.SCAN
    ):
        readings += kit.reading_of(
            kit.Scan(
                where=f"{where}/summary",
                raw=kit.Raw(code=status),
                meaning=rollup,
                time=CLOCK.read(None, received_at=received_at),
            ),
            number,
            rejections,
        )
    readings = kit.with_signer(
        readings, kit.signer(_text(kit.child(summary, "proofOfDelivery").get("receivedBy")))
    )
    return kit.with_estimate(
        readings, kit.estimate(_text(shipment.get("promisedDeliveryDate")), CLOCK.formats)
    )


def _milestones(
    shipment: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> list[kit.Reading]:
    identifier = kit.child(shipment, "identifier")
    carriers_own = _text(kit.child(identifier, "carrierTracking").get("trackingNumber"))
    freight = (_text(identifier.get(name)) for name in FREIGHT_NUMBERS)
    number = (
        # an order that Amazon fulfils is known to its seller by Amazon's number
        _text(identifier.get("aftn"))
        or carriers_own
        or next((found for found in freight if found), None)
    )
    name = (
        # the latest repeats the newest of the history
        "milestoneHistory" if kit.as_list(shipment.get("milestoneHistory")) else "latestMilestone"
    )
    readings: list[kit.Reading] = []
    for index, milestone in kit.objects_at(shipment, name, where, rejections):
        status = kit.child(milestone, "status")
        raw = kit.Raw(code=_text(status.get("code")), reason=_text(status.get("subCode")))
        at = _place(kit.child(milestone, "location", "address"))
        readings += kit.reading_of(
            kit.Scan(
                where=f"{where}/{name}/{index}",
                raw=raw,
                meaning=_meaning(raw),
                time=CLOCK.read(_text(milestone.get("occurredAt")), at, received_at=received_at),
                place=at,
                description=_text(status.get("description")),
            ),
            number,
            rejections,
        )
    for _, forecast in kit.objects(
        shipment.get("trackingEstimates"), f"{where}/trackingEstimates", rejections
    ):
        if _text(forecast.get("type")) == "ESTIMATED_DELIVERY_DATE":
            printed = kit.estimate(
                _text(kit.child(forecast, "estimatedInterval").get("endTime")), CLOCK.formats
            )
            readings = kit.with_estimate(
                # the forecast's own time: of several estimates the last stated counts, in any order
                # of arrival
                readings,
                printed,
                stamp=_text(forecast.get("lastUpdatedTime")) or "",
            )
    return readings


def _package(
    package: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> list[kit.Reading]:
    """Read a package; the first version of the API spells the names with a capital."""
    # the first version of the API spells the names with a capital
    package = _uncapitalized(package)
    number, pointer = _text(package.get("trackingNumber")), f"{where}/trackingEvents"
    readings: list[kit.Reading] = []
    for index, printed in kit.objects(package.get("trackingEvents"), pointer, rejections):
        event = _uncapitalized(printed)
        address = _uncapitalized(kit.child(event, "eventAddress"))
        raw, words = (
            kit.Raw(code=_text(event.get("eventCode"))),
            _text(event.get("eventDescription")),
        )
        at = kit.place(
            city=_text(address.get("city")),
            region=_text(address.get("state")),
            country=_text(address.get("country")),
        )
        readings += kit.reading_of(
            kit.Scan(
                where=f"{pointer}/{index}",
                raw=raw,
                meaning=CODES.get(("", raw.code or "")) or _by_text(words or "") or kit.UNMAPPED,
                time=CLOCK.read(_text(event.get("eventDate")), at, received_at=received_at),
                place=at,
                description=words,
            ),
            number,
            rejections,
        )
    status = _text(package.get("currentStatus"))
    rollup = (
        # lost or destroyed, without distinction: a guess would be wrong for one of them
        kit.UNMAPPED if status == UNDELIVERABLE else CODES.get(("", status or ""), kit.UNMAPPED)
    )
    if not kit.as_list(package.get("trackingEvents")) and status is not None:
        time = CLOCK.read(None, received_at=received_at)
        readings += kit.reading_of(
            kit.Scan(
                where=f"{where}/currentStatus", raw=kit.Raw(code=status), meaning=rollup, time=time
            ),
            number,
            rejections,
        )
    readings = kit.with_signer(readings, kit.signer(_text(package.get("signedForBy"))))
    return kit.with_estimate(
        readings, kit.estimate(_text(package.get("estimatedArrivalDate")), CLOCK.formats)
    )


def _uncapitalized(value: kit.JsonObject) -> kit.JsonObject:
    return {name[:1].lower() + name[1:]: member for name, member in value.items()}


def _meaning(raw: kit.Raw) -> kit.Meaning:
    return CODES.get((raw.reason or "", raw.code or "")) or CODES.get(
        ("", raw.code or ""), kit.UNMAPPED
    )


def _place(address: kit.JsonObject) -> kit.EventPlace:
    return kit.place(
        city=_text(address.get("city")),
        region=_text(address.get("stateOrRegion")) or _text(address.get("region")),
        postal_code=_text(address.get("postalCode")),
        country=_text(address.get("countryCode")),
    )


def _text(value: object) -> str | None:
    return kit.text_unless(value, NULLS)


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read a known code.

    An unknown package code may be read by its text, and the two formats use a word with two
    meanings.
    """
    meaning = _meaning(raw)
    is_of_package = raw.code == UNDELIVERABLE or (
        meaning is kit.UNMAPPED and (raw.code or "").startswith("EVENT_")
    )
    return None if is_of_package else meaning


CARRIER: Final = kit.Carrier(
    carrier_id="amazon",
    name="Amazon",
    number_fields=(
        "trackingId",
        "identifier.aftn",
        "carrierTracking.trackingNumber",
        "payload.trackingNumber",
        "payload.TrackingNumber",
        *(f"identifier.{name}" for name in FREIGHT_NUMBERS),
    ),
    normalizers={"1": normalize},
    formats=(
        "Shipping API JSON",
        "Tracking API milestones JSON",
        "SHIPMENT_TRACKING_MILESTONE_CHANGED notification",
        "Package tracking JSON",
    ),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
