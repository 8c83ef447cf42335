"""DCSA Track & Trace 2.2 and 3: events of container shipping, one or a list of them. Only classifier ACT is a fact; PLN and EST are `info`.

Version 3 splits an event into `metadata` (its id and type) and `payload`, and renames its references; both are read as one event of 2.2.

Event ids are unique only together with what the event is about: a shipment event is about its document, an equipment event about its
container, a transport event about the documents (else the references) that it names, each a shipment of its own. An empty container
carries no goods, so it moves nothing.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Normalized, Raw, Reading
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, as_list, child, objects
from events.parsing.meanings import UNMAPPED, Meaning, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections
from events.parsing.scan import Scan, reading_of
from events.parsing.text import text, text_unless
from events.parsing.times import Clock
from events.spelling import normalize_number
from events.vocabulary import Kind

CODES: Final = meanings("dcsa_codes.csv")
CLOCK: Final = Clock(
    formats=TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y/%m/%d %H:%M:%S[ ][%z]", "%Y-%m-%d %H:%M:%S[ ][%z]")
)
PLACEHOLDER: Final = frozenset({"string"})
FACT: Final = "ACT"
EMPTY: Final = "EMPTY"
"""An indicator; no other code reads so."""
TALK: Final = Meaning(Kind.INFO)
RETRACTED: Final = Meaning(Kind.CORRECTION)
_IS_EVENT: Final = frozenset({"eventType", "payload"})
_NAMES_OF_2: Final = {"documentReference": "documentID", "relatedDocumentReferences": "documentReferences"}
_TYPE_CODES: Final = {
    "SHIPMENT": "shipmentEventTypeCode",
    "TRANSPORT": "transportEventTypeCode",
    "EQUIPMENT": "equipmentEventTypeCode",
}
_DOCUMENTS: Final = ("TRD", "BKG", "SHI", "CBR")
"""Types of the documents that name a shipment, the most definite first."""


class DcsaStatement(NamedTuple):
    """The codes of an event as printed and what they mean."""

    raw: Raw
    meaning: Meaning


def normalize(body: bytes, received_at: datetime) -> Normalized:
    """Events of one push or answer."""
    rejections = Rejections()
    readings: list[Reading] = []
    for where, event in _events(read_json(body), rejections):
        statement, at, event_id = _statement(event), _place(event), text(event.get("eventID"))
        retracted = text(event.get("retractedEventID"))
        for number in _numbers(event):
            found = reading_of(
                Scan(
                    where=where,
                    raw=statement.raw,
                    meaning=statement.meaning,
                    time=CLOCK.read(text(event.get("eventDateTime")), at, received_at=received_at),
                    place=at,
                    description=text(event.get("changeRemark")) or text(event.get("reason")),
                    native_id=event_id,
                    native_id_per_number=True,
                ),
                number,
                rejections,
            )
            readings += found if retracted is None else (_retraction(reading, retracted) for reading in found)
    return Normalized(readings=tuple(readings), rejections=tuple(rejections))


def _events(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is dict and "events" in body:
        yield from ((f"/events/{index}", _whole(event)) for index, event in objects(body["events"], "/events", rejections))
    elif type(body) is dict and _IS_EVENT & body.keys():
        yield "", _whole(body)
    elif type(body) is list and any(type(member) is dict and _IS_EVENT & member.keys() for member in body):
        yield from ((f"/{index}", _whole(event)) for index, event in objects(body, "", rejections))
    elif not (type(body) is dict and {"errors", "httpMethod", "statusCode"} & body.keys()):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no events of DCSA Track & Trace")


def _whole(event: JsonObject) -> JsonObject:
    """An event of version 3 with its halves put together, under the names of 2.2."""
    payload = child(event, "payload")
    if not payload:
        return event
    names = {_NAMES_OF_2.get(name, name): value for name, value in payload.items()}
    return child(event, "metadata") | names


def _statement(event: JsonObject) -> DcsaStatement:
    kind, classifier = text(event.get("eventType")), text(event.get("eventClassifierCode"))
    code = text(event.get(_TYPE_CODES.get(kind or "", "")))
    raw = Raw(type=kind, code=code, reason=classifier, further=_further(event))
    return DcsaStatement(raw, _meaning(raw))


def _meaning(raw: Raw) -> Meaning:
    meaning = CODES.get((raw.type or "", raw.code or ""), UNMAPPED)
    if meaning.kind is Kind.SCAN and (raw.reason != FACT or EMPTY in raw.further):
        return TALK
    return meaning


def _further(event: JsonObject) -> tuple[str, ...]:
    named = ("documentTypeCode", "delayReasonCode", "emptyIndicatorCode")
    return tuple(found for name in named if (found := text(event.get(name))) is not None)


def _numbers(event: JsonObject) -> tuple[str | None, ...]:
    """What the event is about, by the first of these that is printed; (None,) where nothing is."""
    own = {"SHIPMENT": "documentID", "EQUIPMENT": "equipmentReference"}.get(text(event.get("eventType")) or "", "")
    subject = text_unless(event.get(own), PLACEHOLDER)
    if subject is not None:
        return (subject,)
    documents = _values(event, "documentReferences", "documentReference")
    for kind in _DOCUMENTS:
        if named := documents.get(kind):
            return tuple(named)
    references = [value for values in _values(event, "references", "reference").values() for value in values]
    return tuple(references[:1]) or (None,)


def _values(event: JsonObject, name: str, prefix: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for member in as_list(event.get(name)):
        if type(member) is not dict:
            continue
        value = text_unless(member.get(f"{prefix}Value"), PLACEHOLDER) or text_unless(member.get("value"), PLACEHOLDER)
        values = found.setdefault(text(member.get(f"{prefix}Type")) or text(member.get("type")) or "", [])
        if value is not None and value not in values:
            values.append(value)
    return found


def _retraction(reading: Reading, retracted: str) -> Reading:
    corrects = f"{retracted}@{normalize_number(reading.tracking_number or '')}"
    return replace(reading, kind=RETRACTED.kind, status=None, reason=None, corrects=corrects)


def _place(event: JsonObject) -> EventPlace:
    """A UN location code begins with its country."""
    location, call = child(event, "eventLocation"), child(event, "transportCall")
    somewhere = location or child(call, "location") or call
    code = text(somewhere.get("UNLocationCode")) or text(call.get("UNLocationCode"))
    facility = text(somewhere.get("facilityCode")) or text(call.get("facilityCode"))
    address = child(somewhere, "address")
    return place(
        city=text(address.get("city")) or text(somewhere.get("locationName")),
        country=code[:2] if code is not None and len(code) == 5 else address.get("country"),
        facility=f"{code} {facility}" if code and facility else code or facility,
    )


CARRIER: Final = Carrier(
    carrier_id="dcsa",
    name="DCSA Track & Trace",
    number_fields=(
        *("documentID", "equipmentReference", "documentReferenceValue", "referenceValue", "references.value"),
        *("payload.documentReference", "relatedDocumentReferences.value"),
    ),
    normalizers={"1": normalize},
    stable="1",
    formats=("Track & Trace 2.2 JSON", "Track & Trace 3 JSON"),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
