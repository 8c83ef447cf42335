"""DPD: ParcelLifeCycle (SOAP and JSON), traces of DPD France (SOAP) and the group's tracking JSON.

Some countries print steps without dates and the scans behind them with dates: such a step only
repeats its scan, without a time. `ReturningFromDelivery` is back to the depot, not to the sender.
Group times are UTC, the others local.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from lxml.etree import _Element

from events.carriers import kit

# Words of the life cycle and of the group, numbers of DPD France. A word has the same meaning in
# each format. `SC_13` is a scan's number.
CODES: Final = kit.meanings("dpd_codes.csv")

# Prefix of a scan type's name. Countries number the same scan differently (`SC_3_...`,
# `SC_03_...`), so its name is more reliable.
_SCAN: Final = re.compile(r"SC_(?P<number>\d+)_")

_TIMES: Final = kit.TimeFormats(
    "%Y-%m-%dT%H:%M:%S[%f][%z]",
    "%-m/%-d/%Y %-I:%M[:%S] %p",
    "%-d.%-m.%Y[,][ %-H:%M[:%S]]",
    "%Y-%m-%d[ %H:%M[:%S]]",
)
STEPS: Final = kit.Clock(formats=_TIMES, default_zone="Europe/Berlin")
FRANCE: Final = kit.Clock(formats=_TIMES, default_zone="Europe/Paris", country="FR")
# Geopost's home, where a parcel of the group prints no place.
GROUP: Final = kit.Clock(formats=_TIMES, default_zone="Europe/Paris")
_DEPOT: Final = re.compile(r"(?P<city>.+) \((?P<country>[A-Z]{2})\)")
_LIFE_CYCLE_NAMES: Final = frozenset({"scanInfo", "shipmentInfo", "statusInfo"})
_LIFE_CYCLE: Final = "parcellifecycleResponse"
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message", "errorCode", "detail"})


class DpdStep(NamedTuple):
    """A scan, from any of the formats."""

    where: str
    code: str | None
    words: str | None
    at: str | None
    place: kit.EventPlace
    clock: kit.Clock
    signatory: str | None = None


class DpdParcel(NamedTuple):
    number: str | None
    scans: tuple[DpdStep, ...]
    estimate: str | None = None


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for item in (
        _from_xml(kit.read_xml(body), rejections)
        if kit.is_xml(body)
        else _from_json(kit.read_json(body), rejections)
    ):
        found: list[kit.Reading] = []
        for event in item.scans:
            raw = kit.Raw(code=event.code)
            found += kit.reading_of(
                kit.Scan(
                    where=event.where,
                    raw=raw,
                    meaning=_meaning(raw),
                    time=event.clock.read(event.at, event.place, received_at=received_at),
                    place=event.place,
                    description=event.words,
                    signed_by=event.signatory,
                ),
                item.number,
                rejections,
            )
        yield from kit.with_estimate(found, kit.estimate(item.estimate, _TIMES))


def _from_xml(document: kit.Document, rejections: kit.Rejections) -> Iterator[DpdParcel]:
    for answer in kit.answers(document):
        if answer.tag == "getTrackingDataResponse":
            yield from (
                # the answer names no parcel: the request did
                DpdParcel(None, tuple(_steps(result, rejections)))
                for result in answer.iterfind("trackingresult")
            )
        elif answer.tag.startswith("GetShipmentTrace"):
            for number in answer.iter("ShipmentNumber"):
                result = number.getparent()
                # a result that prints its number again and again is one parcel
                if result is not None and result.find("ShipmentNumber") is number:
                    yield DpdParcel(kit.text_at(number, "."), tuple(_traces(result, rejections)))
        elif answer.tag.startswith("getEventsFor"):
            for index, event in kit.elements_at(answer, "return/eventsList", "", rejections):
                yield _infoservices(kit.texts(event), f"return/eventsList[{index}]")
        elif answer.tag != "Fault":
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of DPD"
            )


def _infoservices(fields: Mapping[str, str], where: str) -> DpdParcel:
    """Return an event of DPD Poland's InfoServices, which names its parcel."""
    step = DpdStep(
        where=where,
        code=fields.get("businessCode"),
        words=fields.get("description"),
        at=fields.get("eventTime"),
        place=kit.place(facility=fields.get("depot")),
        clock=GROUP,
    )
    return DpdParcel(fields.get("waybill"), (step,))


def _steps(result: _Element, rejections: kit.Rejections) -> Iterator[DpdStep]:
    for index, step in kit.elements_at(result, "statusInfo", "", rejections):
        fields = kit.texts(step)
        # the steps of the whole life cycle are listed, those to come too
        if fields.get("statusHasBeenReached") != "true":
            continue
        yield DpdStep(
            where=f"statusInfo[{index}]",
            code=fields.get("status"),
            words=kit.text_at(step, "description/content/content", "label/content"),
            at=kit.text_at(step, "date/content"),
            place=_depot(kit.text_at(step, "location/content")),
            clock=STEPS,
        )


def _life_cycle(body: kit.JsonObject, rejections: kit.Rejections) -> Iterator[DpdParcel]:
    """Yield the parcel of the JSON form: the same steps, with the number of the
    parcel, and its scans.
    """
    data = kit.child(body, _LIFE_CYCLE, "parcelLifeCycleData")
    pointer = f"/{_LIFE_CYCLE}/parcelLifeCycleData"
    scans = tuple(
        _scans(
            kit.object_at(
                data, "scanInfo", pointer, rejections, required=False, but=_LIFE_CYCLE_NAMES
            ),
            f"{pointer}/scanInfo",
            rejections,
        )
    )
    steps = tuple(
        DpdStep(
            where=f"{pointer}/statusInfo/{index}",
            code=kit.text(step.get("status")),
            words=_words(step, "description") or kit.text(step.get("label")),
            at=kit.text(step.get("date")),
            place=_depot(kit.text(step.get("location"))),
            clock=STEPS,
        )
        for index, step in kit.objects_at(data, "statusInfo", pointer, rejections, required=False)
        if step.get("statusHasBeenReached") in (True, "true")
    )
    # where no scan is dated the steps are all there is, dated or not
    dated = any(scan.at for scan in scans)
    yield DpdParcel(
        kit.text(kit.child(data, "shipmentInfo").get("parcelLabelNumber")),
        # a step without a date repeats one of the dated scans, and as a scan of its own it would be
        # newest
        (*(step for step in steps if step.at or not dated), *scans),
    )


def _scans(info: kit.JsonObject, pointer: str, rejections: kit.Rejections) -> Iterator[DpdStep]:
    for index, scan in kit.objects_at(info, "scan", pointer, rejections):
        data = kit.child(scan, "scanData")
        yield DpdStep(
            where=f"{pointer}/scan/{index}",
            code=kit.text(kit.child(data, "scanType").get("name")),
            words=_words(scan, "scanDescription"),
            at=kit.text(scan.get("date")),
            place=_depot(kit.text(data.get("location"))),
            clock=STEPS,
        )


def _words(member: kit.JsonObject, name: str) -> str | None:
    return kit.text(next(iter(kit.as_list(kit.child(member, name).get("content"))), None))


def _meaning(raw: kit.Raw) -> kit.Meaning:
    """Read a scan with an unknown name by its number."""
    code = raw.code or ""
    scan = _SCAN.match(code)
    if scan is None:
        return CODES.get((code,), kit.UNMAPPED)
    # countries print the same number as `SC_3_` and `SC_03_`
    number = f"SC_{scan['number'].lstrip('0').zfill(2)}"
    # the name before the number, which countries assign differently
    return kit.finest(
        (code, CODES.get((f"SC_{code[scan.end() :]}",))), (number, CODES.get((number,)))
    )


def _depot(printed: str | None) -> kit.EventPlace:
    """Read `Hamburg (DE)`."""
    depot = _DEPOT.fullmatch(printed or "")
    return (
        kit.place(city=depot["city"], country=depot["country"])
        if depot
        else kit.place(city=printed)
    )


def _traces(result: _Element, rejections: kit.Rejections) -> Iterator[DpdStep]:
    for index, trace in kit.elements_at(result, "Traces/clsTrace", "", rejections):
        fields = kit.texts(trace)
        date, time = fields.get("ScanDate"), fields.get("ScanTime")
        yield DpdStep(
            where=f"Traces/clsTrace[{index}]",
            code=fields.get("StatusNumber"),
            words=fields.get("StatusDescription"),
            at=f"{date} {time}" if date and time else date,
            place=kit.place(city=fields.get("CenterName")),
            clock=FRANCE,
        )


def _from_json(body: object, rejections: kit.Rejections) -> Iterator[DpdParcel]:
    if type(body) is dict and _LIFE_CYCLE in body:
        yield from _life_cycle(body, rejections)
        return
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{at}", parcel) for at, parcel in kit.objects(body, "", rejections)]
    )
    # a list may hold an error beside a parcel: that is no reason to lose the parcel
    known = kit.recognised(found, {"events", "trackingNumber"}, rejections)
    if not known and not any(_ERROR_FIELDS & parcel.keys() for _, parcel in found):
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of DPD")
    for where, parcel in known:
        scans = tuple(_group(parcel, where, rejections))
        yield DpdParcel(
            kit.text(parcel.get("trackingNumber")), scans, kit.text(parcel.get("estimatedDelivery"))
        )


def _group(parcel: kit.JsonObject, where: str, rejections: kit.Rejections) -> Iterator[DpdStep]:
    """Yield the events of a parcel.

    A parcel without events has its status as its only event, without a time.
    """
    events = kit.objects_at(parcel, "events", where, rejections, required="status" not in parcel)
    # the status repeats the newest event; an unknown one is not worth a dead letter per poll
    if not events and (status := kit.text(parcel.get("status"))) and (status,) in CODES:
        yield DpdStep(
            f"{where}/status",
            status,
            kit.text(parcel.get("statusDescription")),
            None,
            kit.place(),
            GROUP,
        )
    for index, event in events:
        location = kit.child(event, "location")
        yield DpdStep(
            where=f"{where}/events/{index}",
            code=kit.text(event.get("status")),
            words=kit.text(event.get("description")),
            at=kit.text(event.get("timestamp")),
            place=kit.place(
                city=location.get("city"),
                postal_code=location.get("postalCode"),
                country=location.get("country"),
            ),
            clock=GROUP,
            signatory=kit.text(event.get("signedBy")),
        )


CARRIER: Final = kit.Carrier(
    carrier_id="dpd",
    name="DPD",
    number_fields=(
        "trackingNumber",
        "parcelLabelNumber",
        "ShipmentNumber",
        "trackingnumber",
        "waybill",
    ),
    normalizers={"1": normalize},
    formats=(
        "ParcelLifeCycle SOAP",
        "ParcelLifeCycle JSON",
        "DPD France traces SOAP",
        "Group tracking JSON",
        "DPD Poland InfoServices SOAP",
    ),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
