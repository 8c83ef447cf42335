"""USPS: Tracking API v3 (JSON), Web Tools TrackResponse (XML, and as JSON) and the view of its
reseller Stamps.com (SOAP).

A scan has an EventCode, or in older answers only its text, which is then the code: it is matched
whole, never in part ("Delivered, To Agent" is no delivery to the consignee). Times are local to the
place; those of v3 come with their time in GMT.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from lxml.etree import _Element

from events.carriers import kit

# (code, text) in lower case. Text alone where the format has no codes; both where a code has
# several meanings.
CODES: Final = kit.meanings("usps_codes.csv")
# Codes that mean several things; empty for a text without a code.
_WORDED: Final = frozenset(code for code, words in CODES if words)

FORMATS: Final = kit.TimeFormats(
    "%Y-%m-%dT%H:%M:%S[%f][%z]",
    "%Y-%m-%dT%H:%M[%z]",
    "%Y-%m-%d[ %H:%M:%S[%f]]",
    "%b %-d, %Y[ %-I:%M[ ]%p]",
    "%-m/%-d/%Y[ %-I:%M[ ]%p]",
)
# A scan without a place is taken for the middle of the country; Web Tools prints a shipper's notice
# as a date, v3 as its midnight.
DOMESTIC: Final = kit.Clock(
    formats=FORMATS, default_zone="America/Chicago", midnight_is_day="nowhere"
)
DOMESTIC_WITH_FALSE_Z: Final = kit.Clock(
    formats=FORMATS, default_zone="America/Chicago", trust_offset=False, midnight_is_day="nowhere"
)
FOREIGN: Final = kit.Clock(formats=FORMATS)

# USPS's sample answers print the name of the type in place of an event code
PLACEHOLDER: Final = frozenset({"string"})
# a prediction before an expectation: both are printed, and only one estimate counts
ESTIMATES: Final = (
    "predictedDeliveryTimeStamp",
    "predictedDeliveryDate",
    "expectedDeliveryTimeStamp",
    "expectedDeliveryDate",
    "PredictedDeliveryDate",
    "ExpectedDeliveryDate",
)
_JSON_ENDS: Final = (
    "originCity",
    "originState",
    "originZIP",
    "destinationCity",
    "destinationState",
    "destinationZIP",
)
_XML_ENDS: Final = (
    "OriginCity",
    "OriginState",
    "OriginZip",
    "DestinationCity",
    "DestinationState",
    "DestinationZip",
)
_LISTS: Final = ("trackSummary", "trackingEvents", "trackDetail", "trackDetails")
_KNOWN_LISTS: Final = frozenset(_LISTS)
_WRAPPERS: Final = ("payload", "data", "trackingDetails", "trackInfo")
# Names of USPS's facilities, of those for mail from abroad too (`ISC NEW YORK NY(USPS)`).
_FACILITY: Final = re.compile(
    r"(?:(?P<city>.+) (?P<state>[A-Z]{2}) (?:NETWORK |INTERNATIONAL )?DISTRIBUTION CENTER"
    r"(?: ANNEX)?"
    r"|ISC (?P<isc>.+?)(?: (?P<isc_state>[A-Z]{2}))? ?\(USPS\))"
)
_WEB_TOOLS_LISTS: Final = frozenset({"TrackSummary", "TrackDetail"})
_WEB_TOOLS: Final = ("TrackResults", "TrackResponse")
_SENTENCE_DATE: Final = re.compile(
    r"\b(?P<date>(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{1,2}, \d{4})"
)
_SENTENCE_TIME: Final = re.compile(r"\b(?P<time>\d{1,2}:\d{2} ?[ap]m)\b", re.IGNORECASE)


class UspsScan(NamedTuple):
    """A scan, from any of the formats. `where` is its pointer in the message.

    `at` is its local time as printed.
    """

    where: str
    code: str | None
    words: str | None
    at: str | None
    gmt: str | None = None
    offset: str | None = None
    city: str | None = None
    state: str | None = None
    postal_code: str | None = None
    country: str | None = None
    signer: str | None = None
    # kept apart from the text: only a sentence must not become a code
    is_sentence: bool = False


class UspsItem(NamedTuple):
    """A mail piece, from any of the formats."""

    number: str | None
    scans: tuple[UspsScan, ...]
    estimate: str | None
    journey: kit.Journey = kit.NO_JOURNEY
    service: str | None = None


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    items = (
        _from_xml(kit.read_xml(body), rejections)
        if kit.is_xml(body)
        else _from_json(kit.read_json(body), rejections)
    )
    for item in items:
        found = kit.readings_of(
            (_scan(scan, received_at, item.journey) for scan in item.scans),
            item.number,
            rejections,
            service=item.service,
        )
        yield from kit.with_estimate(found, item.estimate)


def _scan(scan: UspsScan, received_at: datetime, journey: kit.Journey) -> kit.Scan:
    """Read a scan; an older answer prints the text in place of a code."""
    where = _place(scan)
    return kit.Scan(
        where=scan.where,
        # a sentence holds the addressee's city and a date: as a code it would be in clear
        raw=kit.Raw(code=scan.code or (None if scan.is_sentence else scan.words)),
        meaning=(meant := _meaning(scan.code or "", (scan.words or "").casefold())),
        time=_time(scan, where, received_at, journey.at(meant.status)),
        place=where,
        description=scan.words,
        signed_by=scan.signer,
    )


def _meaning(code: str, words: str) -> kit.Meaning:
    # the pair first: the text decides where a code means several things
    return CODES.get((code, words)) or CODES.get((code, ""), kit.UNMAPPED)


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    # a code with several meanings needs its text, which is sealed; older answers have the text as
    # code
    code = raw.code or ""
    return (
        None
        if code in _WORDED
        else CODES.get((code, "")) or CODES.get(("", code.casefold()), kit.UNMAPPED)
    )


def _place(scan: UspsScan) -> kit.EventPlace:
    """Read the place; USPS prints no country for its own."""
    # only a scan abroad names its country; without this a state would have no zone
    country = scan.country or ("US" if scan.state or scan.postal_code else None)
    return kit.place(
        city=scan.city, region=scan.state, postal_code=scan.postal_code, country=country
    )


def _journey(*ends: str | None) -> kit.Journey:
    """Read city, state and ZIP code of the origin, then of the destination; within the United
    States where a state is printed.
    """
    origin, destination = (
        # no state: an end abroad, whose postal code would be looked up among the ZIP codes
        kit.place(city=city, region=state, postal_code=zip_code, country="US" if state else None)
        for city, state, zip_code in (ends[:3], ends[3:])
    )
    return kit.Journey(origin, destination)


def _time(
    scan: UspsScan, where: kit.EventPlace, received_at: datetime, journey: kit.Journey
) -> kit.PrintedTime | None:
    # a facility's name stands in the field of the city; its state decides the zone, but the printed
    # city stays the place: it is part of the id
    if where.country is None and scan.city and (facility := _FACILITY.fullmatch(scan.city)):
        city, state = (
            facility["city"] or facility["isc"],
            facility["state"] or facility["isc_state"],
        )
        where = kit.EventPlace(city=city, region=state, country="US")
    # abroad a default of the United States would be wrong: the place decides, else UTC is assumed
    clock = FOREIGN if where.country not in (None, "US") else DOMESTIC
    # v3 prints local times with a `Z`, beside their true time in GMT
    if scan.at is not None and scan.at.endswith("Z"):
        clock = DOMESTIC_WITH_FALSE_Z
    # the time in GMT alone is read as it is printed, without America's default zone
    if scan.gmt is not None and scan.at is None:
        return FOREIGN.read(scan.gmt, where, received_at=received_at, journey=journey)
    if scan.gmt is not None:
        return clock.read_pair(scan.at, scan.gmt, where, received_at=received_at, journey=journey)
    if scan.offset is not None:
        return clock.read_with_offset(
            scan.at, scan.offset, where, received_at=received_at, journey=journey
        )
    return clock.read(scan.at, where, received_at=received_at, journey=journey)


def _from_json(body: object, rejections: kit.Rejections) -> Iterator[UspsItem]:
    if type(body) not in (dict, list):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but neither an object nor a list"
        )
    # before the items of v3: its lists have the same names but for their capitals
    web_tools = next((name for name in _WEB_TOOLS if type(body) is dict and name in body), None)
    if web_tools is not None and type(body) is dict:
        yield from _web_tools_items(kit.child(body, web_tools), f"/{web_tools}", rejections)
        return
    for where, item in _json_items(body, "", rejections):
        # the summary repeats the newest of the events: equal but for their pointers, they are one
        # scan
        scans = tuple({scan[1:]: scan for scan in _json_scans(item, where, rejections)}.values())
        # the rollup repeats the newest event, without its code and time
        if not any(kit.as_list(item.get(name)) for name in _LISTS) and (
            rollup := kit.text(item.get("status"))
        ):
            scans = (UspsScan(where=f"{where}/status", code=None, words=rollup, at=None),)
        printed = next((found for name in ESTIMATES if (found := kit.text(item.get(name)))), None)
        journey = _journey(*(kit.text(item.get(name)) for name in _JSON_ENDS))
        service = kit.without_markup(kit.text(item.get("mailClass")))
        yield UspsItem(
            kit.text(item.get("trackingNumber")),
            scans,
            kit.estimate(printed, FORMATS),
            journey,
            service,
        )


def _web_tools_items(
    answer: kit.JsonObject, where: str, rejections: kit.Rejections
) -> Iterator[UspsItem]:
    """Yield the items of an answer of Web Tools as JSON: an attribute is printed with an `@`."""
    for index, info in kit.objects_at(answer, "TrackInfo", where, rejections):
        pointer, scans = f"{where}/TrackInfo/{index}", []
        # read for its rejections alone: a list under another name must not be lost in silence
        if not _WEB_TOOLS_LISTS & info.keys():
            kit.objects_at(info, "TrackDetail", pointer, rejections, required="Status" not in info)
        # the summary first: it is the newest scan, and lists are newest first
        for name in sorted(_WEB_TOOLS_LISTS, reverse=True):
            for at, event in enumerate(kit.as_list(info.get(name))):
                if type(event) is dict:
                    fields = {
                        field: found
                        for field, value in event.items()
                        if (found := kit.text(value)) is not None
                    }
                    scans.append(_web_tools_scan(fields, f"{pointer}/{name}/{at}"))
                else:
                    # without fields in the request Web Tools answers in sentences
                    scans += _sentence(kit.text(event), f"{pointer}/{name}/{at}")
        rollup = kit.without_markup(kit.text(info.get("Status")))
        # beside scans the rollup would be a second, timeless statement of the newest
        if not scans and rollup is not None:
            scans.append(UspsScan(where=f"{pointer}/Status", code=None, words=rollup, at=None))
        printed = next((found for name in ESTIMATES if (found := kit.text(info.get(name)))), None)
        journey = _journey(*(kit.text(info.get(name)) for name in _XML_ENDS))
        number, service = (
            kit.text(info.get("@ID")) or kit.text(info.get("ID")),
            kit.without_markup(kit.text(info.get("Class"))),
        )
        yield UspsItem(number, tuple(scans), kit.estimate(printed, FORMATS), journey, service)


def _json_items(
    body: object, where: str, rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject]]:
    """Yield the mail pieces with their pointers.

    A list of them, a single piece, or in the envelope of a notification.
    """
    if type(body) is list:
        for index, member in kit.objects(body, where, rejections):
            yield from _json_items(member, f"{where}/{index}", rejections)
    elif type(body) is dict:
        wrapper = next((name for name in _WRAPPERS if type(body.get(name)) in (dict, list)), None)
        # before the wrappers: an item may have a member that is called like one of them
        if any(name in body for name in _LISTS) or ("trackingNumber" in body and "status" in body):
            yield where, body
        elif wrapper is not None:
            yield from _json_items(body[wrapper], f"{where}/{wrapper}", rejections)
        # an answer about an error is read and holds nothing; anything else unknown is a dead letter
        elif "error" not in body and "errors" not in body:
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of USPS"
            )


def _json_scans(item: kit.JsonObject, where: str, rejections: kit.Rejections) -> Iterator[UspsScan]:
    # every version prints another of these lists, so none of them is required
    for name in _LISTS:
        pointer = f"{where}/{name}"
        for index, event in kit.objects_at(
            item, name, where, rejections, required=False, but=_KNOWN_LISTS
        ):
            date, time = kit.text(event.get("eventDate")), kit.text(event.get("eventTime"))
            yield UspsScan(
                where=f"{pointer}/{index}",
                code=kit.text_unless(event.get("eventCode"), PLACEHOLDER),
                # texts hold HTML: `USPS Ground Advantage<SUP>&#153;</SUP>`
                words=kit.without_markup(
                    kit.text(event.get("eventType")) or kit.text(event.get("event"))
                ),
                at=kit.text(event.get("eventTimestamp")) or _joined(date, time),
                gmt=kit.text(event.get("GMTTimestamp")),
                offset=kit.text(event.get("GMTOffset")),
                city=kit.text(event.get("eventCity")),
                state=kit.text(event.get("eventState")),
                postal_code=kit.text(event.get("eventZIP")) or kit.text(event.get("eventZIPCode")),
                country=kit.text(event.get("eventCountry")),
                signer=kit.text(event.get("name")),
            )


def _from_xml(document: kit.Document, rejections: kit.Rejections) -> Iterator[UspsItem]:
    answer = kit.body_of(document)
    # an error about the request, not about a mail piece: no dead letter for each failed poll
    if answer is None or answer.tag in ("Error", "Fault"):
        return
    if answer.tag == "TrackResponse":
        for index, info in enumerate(answer.iterfind("TrackInfo"), start=1):
            printed = next(
                (found for name in ESTIMATES if (found := kit.text_at(info, name))), None
            )
            journey = _journey(*(kit.text_at(info, name) for name in _XML_ENDS))
            scans = tuple(_xml_scans(info, f"TrackInfo[{index}]", rejections))
            service = kit.without_markup(kit.text_at(info, "Class"))
            yield UspsItem(
                kit.text(info.get("ID")), scans, kit.estimate(printed, FORMATS), journey, service
            )
    elif answer.tag == "TrackShipmentResponse":
        yield UspsItem(
            kit.text_at(answer, "TrackingNumber"),
            tuple(
                _stamps_scans(
                    kit.elements_at(answer, "TrackingEvents/TrackingEvent", "", rejections)
                )
            ),
            None,
        )
    else:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "XML, but no TrackResponse of USPS"
        )


def _xml_scans(info: _Element, where: str, rejections: kit.Rejections) -> Iterator[UspsScan]:
    # the summary is the newest scan and is in no other list
    events = [*info.iterfind("TrackSummary"), *info.iterfind("TrackDetail")]
    events = events or [
        event for _, event in kit.elements_at(info, "TrackDetail", where, rejections)
    ]
    rollup = kit.text_at(info, "Status")
    if not events and rollup is not None:
        yield UspsScan(
            where=f"{where}/Status", code=None, words=kit.without_markup(rollup), at=None
        )
    for index, event in enumerate(events, start=1):
        pointer = f"{where}/{event.tag}[{index}]"
        # an element without fields is a sentence
        if len(event) == 0:
            yield from _sentence(kit.text_at(event, "."), pointer)
            continue
        yield _web_tools_scan(kit.texts(event), pointer)


def _web_tools_scan(fields: dict[str, str], where: str) -> UspsScan:
    return UspsScan(
        where=where,
        code=fields.get("EventCode"),
        words=kit.without_markup(fields.get("Event")),
        at=_joined(fields.get("EventDate"), fields.get("EventTime")),
        offset=fields.get("GMTOffset"),
        city=fields.get("EventCity"),
        state=fields.get("EventState"),
        postal_code=fields.get("EventZIPCode"),
        country=fields.get("EventCountry"),
        signer=fields.get("Name"),
    )


def _sentence(words: str | None, where: str) -> Iterator[UspsScan]:
    """Yield a scan from a sentence, for requests without fields.

    A sentence without a date is a notice ("There is no record of ...").
    """
    # a notice has no date ("There is no record of ..."), and is no scan
    if words is None or (date := _SENTENCE_DATE.search(words)) is None:
        return
    time = _SENTENCE_TIME.search(words)
    yield UspsScan(
        where=where,
        code=None,
        words=words,
        at=_joined(date["date"], time["time"] if time else None),
        is_sentence=True,
    )


def _stamps_scans(events: Iterable[tuple[int, _Element]]) -> Iterator[UspsScan]:
    for index, event in events:
        fields = kit.texts(event)
        yield UspsScan(
            where=f"TrackingEvents/TrackingEvent[{index}]",
            code=fields.get("TrackingEventType"),
            words=fields.get("Event"),
            at=fields.get("Timestamp"),
            city=fields.get("City"),
            state=fields.get("State"),
            postal_code=fields.get("Zip"),
            country=fields.get("Country"),
            signer=fields.get("SignedBy"),
        )


def _joined(date: str | None, time: str | None) -> str | None:
    return f"{date} {time}" if date and time else date


CARRIER: Final = kit.Carrier(
    carrier_id="usps",
    name="USPS",
    number_fields=("trackingNumber|TrackingNumber", "TrackInfo.@ID", "TrackInfo.ID"),
    normalizers={"1": normalize},
    formats=(
        "Tracking API v3 JSON",
        "Web Tools TrackResponse XML",
        "Web Tools TrackResults JSON",
        "Stamps.com TrackShipmentResponse SOAP",
    ),
    reread=_reread,
    texts=kit.texts_of(CODES),
    authentication=(
        kit.Hmac(header="X-HMAC"),
        kit.Hmac(header="X-HMAC", encoding="base64"),
        kit.ShipperChoice(),
    ),
)
