"""PostNL: answers of the ShippingStatus API.

They hold the complete or current status of a shipment, updated shipments, or a single update. An
answer with events is read by them: each of its statuses repeats an event at the same time. Without
them the statuses are read. PostNL's webhooks are a pilot without a documented body. Older answers
print `01B` for the code B01, and for others as well: there a known text decides.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# Codes of events (`B01`) and of statuses (numbers): their names never meet.
CODES: Final = kit.meanings("postnl_codes.csv")

DELIVERED: Final = CODES[("11",)]

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%d-%m-%Y %H:%M:%S[%f]"), default_zone="Europe/Amsterdam"
)

_ROOTS: Final = ("CompleteStatus", "CurrentStatus")
_NO_STATUS_FIELDS: Final = frozenset(
    {"Signature", "Warnings", "Errors", "Error", "fault", "http_status"}
)
_LISTS: Final = frozenset({"Event", "OldStatus", "Status"})
_by_text = kit.by_sentence(
    {
        "zending is bezorgd*": DELIVERED,
        "pakket is bezorgd*": DELIVERED,
        "zending afgeleverd": DELIVERED,
    }
)
_REVERSED: Final = re.compile(r"\A(\d\d)([A-Z])\Z", re.ASCII)


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, shipment in _shipments(kit.read_json(body), rejections):
        scans = _scans(shipment, where, received_at, rejections)
        yield from kit.with_estimate(
            kit.readings_of(
                scans,
                kit.text(shipment.get("Barcode")),
                rejections,
                service=kit.text(shipment.get("ProductDescription")),
            ),
            _estimate(shipment),
        )


def _shipments(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is list:
        found = [(f"/{index}", shipment) for index, shipment in kit.objects(body, "", rejections)]
        known = kit.recognised(found, {"Barcode"}, rejections)
    elif type(body) is not dict:
        known = []
    elif "Barcode" in body and "Status" in body:
        known = [("", body)]
    else:
        known = []
        for root in body.keys() & set(_ROOTS):
            pointer = f"/{root}/Shipment"
            known += [
                (f"{pointer}/{index}", shipment)
                for index, shipment in kit.objects_at(
                    kit.object_at(body, root, "", rejections), "Shipment", f"/{root}", rejections
                )
            ]
    if type(body) is dict and "Signature" in body:
        rejections.note_nothing()
    if not known and not (type(body) is dict and (_NO_STATUS_FIELDS | set(_ROOTS)) & body.keys()):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no ShippingStatus of PostNL"
        )
    yield from known


def _scans(
    shipment: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    events = kit.objects_at(shipment, "Event", where, rejections, required=False, but=_LISTS)
    for index, event in events:
        raw = kit.Raw(code=kit.text(event.get("Code")))
        yield _scan(event, raw, event.get("Description"), f"{where}/Event/{index}", received_at)
    # each status repeats an event at the same time
    if events:
        return
    older = kit.objects_at(shipment, "OldStatus", where, rejections, required=False, but=_LISTS)
    steps = [*((f"{where}/OldStatus/{index}", status) for index, status in older)]
    steps += [
        (f"{where}/Status", status)
        for _, status in kit.objects_at(
            shipment, "Status", where, rejections, required=not steps and "Event" not in shipment
        )
    ]
    for at, status in steps:
        raw = kit.Raw(
            type=kit.text(status.get("PhaseCode")), code=kit.text(status.get("StatusCode"))
        )
        yield _scan(status, raw, status.get("StatusDescription"), at, received_at)


def _scan(
    step: kit.JsonObject, raw: kit.Raw, description: object, where: str, received_at: datetime
) -> kit.Scan:
    printed, words = (
        kit.text(step.get("TimeStamp")) or kit.text(step.get("Timestamp")),
        kit.text(description),
    )
    # older answers print `01B` for the code B01, and for others as well: there a known text decides
    worded = _by_text(words or "") if _REVERSED.search(raw.code or "") else None
    return kit.Scan(
        where=where,
        raw=raw,
        meaning=worded or _meaning(raw),
        time=CLOCK.read(printed, received_at=received_at),
        description=words,
    )


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    return None if _REVERSED.search(raw.code or "") else _meaning(raw)


def _meaning(raw: kit.Raw) -> kit.Meaning:
    code = raw.code or ""
    return CODES.get((code,)) or CODES.get((_REVERSED.sub(r"\2\1", code),), kit.UNMAPPED)


def _estimate(shipment: kit.JsonObject) -> str | None:
    """Return the beginning of the frame in which the shipment is expected, or the day."""
    printed = kit.text(kit.child(shipment, "Expectation").get("ETAFrom")) or kit.text(
        shipment.get("DeliveryDate")
    )
    return kit.estimate(printed, kit.ISO) if printed else None


CARRIER: Final = kit.Carrier(
    carrier_id="postnl",
    name="PostNL",
    number_fields=("Barcode",),
    normalizers={"1": normalize},
    formats=("ShippingStatus JSON", "Updated shipments JSON"),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
