"""Bring and Posten Norge: answers of the Tracking API.

A status names the group of an event; the event's own code (`lmEventCode`) is the network's and is
in no public list. Times print their offset. An event of a sender or a recipient may be marked as
insignificant; it counts all the same.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("bring_codes.csv")
_meaning: Final = kit.by_code(CODES)

FORMATS: Final = kit.TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%-d.%-m.%Y[ %-H:%M]", "%Y-%m-%d")
CLOCK: Final = kit.Clock(formats=FORMATS, default_zone="Europe/Oslo")

_CONSIGNMENTS: Final = "consignmentSet"
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message", "apiVersion"})


# Members of a push of Event Cast, Bring's webhook.
_EVENT_CAST: Final = frozenset({"status", "package", "created"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Yield the events of an answer; a consignment with an error has none."""
    answer = kit.read_json(body)
    # all three: each by itself is a common name
    if type(answer) is dict and answer.keys() >= _EVENT_CAST:
        yield from kit.reading_of(
            _pushed(answer, received_at), kit.text(answer.get("package")), rejections
        )
        return
    for where, package in _packages(answer, rejections):
        found = kit.readings_of(
            _scans(package, where, received_at, rejections),
            kit.text(package.get("packageNumber")),
            rejections,
            service=kit.text(package.get("productName")),
        )
        yield from kit.with_estimate(
            found, kit.estimate(kit.text(package.get("dateOfEstimatedDelivery")), FORMATS)
        )


def _pushed(push: kit.JsonObject, received_at: datetime) -> kit.Scan:
    raw = kit.Raw(code=kit.text(push.get("status")))
    return kit.Scan(
        where="",
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(kit.text(push.get("created")), received_at=received_at),
    )


def _packages(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is dict and _CONSIGNMENTS in body:
        for index, consignment in kit.objects_at(body, _CONSIGNMENTS, "", rejections):
            yield from _of_consignment(consignment, f"/{_CONSIGNMENTS}/{index}", rejections)
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of Bring")


def _of_consignment(
    consignment: kit.JsonObject, where: str, rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject]]:
    pointer = f"{where}/packageSet"
    yield from (
        (f"{pointer}/{index}", package)
        for index, package in kit.objects_at(consignment, "packageSet", where, rejections)
    )


def _scans(
    package: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, event in kit.objects_at(package, "eventSet", where, rejections):
        further = tuple(
            code
            for name in ("lmEventCode", "lmCauseCode", "lmMeasureCode")
            if (code := kit.text(event.get(name)))
        )
        raw = kit.Raw(code=kit.text(event.get("status")), further=further)
        at = kit.place(
            city=event.get("city"),
            postal_code=event.get("postalCode"),
            country=event.get("countryCode"),
            facility=event.get("unitId"),
        )
        date, time = kit.text(event.get("displayDate")), kit.text(event.get("displayTime"))
        # the displayed time has no offset
        printed = kit.text(event.get("dateIso")) or (f"{date} {time}" if date and time else date)
        yield kit.Scan(
            where=f"{where}/eventSet/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read(printed, at, received_at=received_at),
            place=at,
            description=kit.without_markup(kit.text(event.get("description"))),
            signed_by=kit.child(event, "recipientSignature").get("name"),
        )


CARRIER: Final = kit.Carrier(
    carrier_id="bring",
    name="Bring",
    number_fields=("packageNumber",),
    normalizers={"1": normalize},
    formats=("Tracking JSON",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
