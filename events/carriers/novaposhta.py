"""Nova Poshta (Ukraine): answers of `TrackingDocument.getStatusDocuments`.

Each document prints its state alone, and its time. A number that is not found (anymore) has a state
of its own, without meaning. Times are Ukrainian.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("novaposhta_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%Y-%m-%d[ %H:%M:%S]", "%d-%m-%Y[ %H:%M:%S]", "%d.%m.%Y[ %H:%M:%S]"),
    default_zone="Europe/Kyiv",
    country="UA",
)

NOT_FOUND: Final = frozenset({"3", "80"})

_TIMES: Final = ("TrackingUpdateDate", "RecipientDateTime", "DateCreated")


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, document in _documents(kit.read_json(body), rejections):
        raw = kit.Raw(code=kit.text(document.get("StatusCode")))
        # a number that is not found, or not any more, says nothing of the parcel
        if raw.code in NOT_FOUND:
            rejections.note_nothing()
            continue
        printed = next((at for name in _TIMES if (at := kit.text(document.get(name)))), None)
        scan = kit.Scan(
            where=where,
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(printed, received_at=received_at),
            description=kit.text(document.get("Status")),
        )
        found = kit.readings_of(
            (scan,),
            kit.text(document.get("Number")),
            rejections,
            service=kit.text(document.get("ServiceType")),
        )
        yield from kit.with_estimate(
            found, kit.estimate(kit.text(document.get("ScheduledDeliveryDate")), CLOCK.formats)
        )


def _documents(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is list:
        yield from (
            (f"/{index}", document) for index, document in kit.objects(body, "", rejections)
        )
    elif type(body) is dict and "StatusCode" in body:
        yield "", body
    elif type(body) is dict and {"data", "errors"} & body.keys():
        listed = kit.objects_at(body, "data", "", rejections, required="errors" not in body)
        yield from ((f"/data/{index}", document) for index, document in listed)
    else:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no status of Nova Poshta"
        )


CARRIER: Final = kit.Carrier(
    carrier_id="novaposhta",
    name="Nova Poshta",
    number_fields=("Number",),
    normalizers={"1": normalize},
    formats=("TrackingDocument JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
