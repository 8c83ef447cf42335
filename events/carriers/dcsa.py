"""DCSA Track & Trace 2.2 and 3: events of container shipping, one or a list of them. Only classifier ACT is a fact; PLN and EST are `info`.

The beta of version 3 splits an event into `metadata` (its id and type) and `payload`, and version 3 itself into a classification and
details of the shipment, the transport and the equipment; all are read as one event of 2.2. Version 3 prints a new state of an event under
its old id, so that only a fact goes by the id, and takes an event back by printing it again with `isRetracted`.

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
from events.event import EventPlace, Raw, Reading
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, as_list, child, objects, objects_at
from events.parsing.meanings import UNMAPPED, Meaning, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of
from events.parsing.text import text, text_unless
from events.parsing.times import Clock
from events.spelling import normalize_number
from events.vocabulary import Kind, Status

CODES: Final = meanings("dcsa_codes.csv")
CLOCK: Final = Clock(
    formats=TimeFormats(
        "%Y-%m-%dT%H:%M:%S[%f][%z]",
        "%Y-%m-%dT%H:%M[%z]",
        "%Y/%m/%d %H:%M:%S[ ][%z]",
        "%Y-%m-%d %H:%M:%S[ ][%z]",
    )
)
PLACEHOLDER: Final = frozenset({"string"})
FACT: Final = "ACT"
EMPTY: Final = "EMPTY"
"""An indicator; no other code reads so."""
TALK: Final = Meaning(Kind.INFO)
RETRACTED: Final = Meaning(Kind.CORRECTION)
_IS_EVENT: Final = frozenset({"eventType", "payload", "eventClassification"})
_NAMES_OF_2: Final = {
    "documentReference": "documentID",
    "relatedDocumentReferences": "documentReferences",
}
_TYPE_CODES: Final = {
    "SHIPMENT": "shipmentEventTypeCode",
    "TRANSPORT": "transportEventTypeCode",
    "EQUIPMENT": "equipmentEventTypeCode",
    "IOT": "iotEventTypeCode",
    "REEFER": "reeferEventTypeCode",
}
_SUBJECTS: Final = {
    "SHIPMENT": "documentID",
    "EQUIPMENT": "equipmentReference",
    "IOT": "equipmentReference",
    "REEFER": "equipmentReference",
}
_DOCUMENTS: Final = ("TRD", "BKG", "SHI", "CBR")
"""Types of the documents that name a shipment, the most definite first."""
_BOOKINGS: Final = frozenset({"BKG", "CBR"})
"""Documents that are cancelled with their shipment. Any other is made out anew."""


class DcsaStatement(NamedTuple):
    """The codes of an event as printed and what they mean."""

    raw: Raw
    meaning: Meaning


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    for where, event in _events(read_json(body), rejections):
        statement, at = _statement(event), _place(event)
        event_id, retracted = _ids(event)
        for number in _numbers(event):
            found = reading_of(
                Scan(
                    where=where,
                    raw=statement.raw,
                    meaning=statement.meaning,
                    time=CLOCK.read(
                        text(event.get("eventDateTime")) or _retracted_at(event),
                        at,
                        received_at=received_at,
                    ),
                    place=at,
                    description=text(event.get("changeRemark")) or text(event.get("reason")),
                    native_id=event_id,
                    native_id_per_number=True,
                ),
                number,
                rejections,
            )
            yield from (
                found
                if retracted is None
                else (_retraction(reading, retracted) for reading in found)
            )


def _events(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is dict and "events" in body:
        yield from (
            (f"/events/{index}", _whole(event))
            for index, event in objects_at(body, "events", "", rejections)
        )
    elif type(body) is dict and _IS_EVENT & body.keys():
        yield "", _whole(body)
    elif type(body) is list and any(
        type(member) is dict and _IS_EVENT & member.keys() for member in body
    ):
        yield from ((f"/{index}", _whole(event)) for index, event in objects(body, "", rejections))
    elif not (type(body) is dict and {"errors", "httpMethod", "statusCode"} & body.keys()):
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "JSON, but no events of DCSA Track & Trace"
        )


def _whole(event: JsonObject) -> JsonObject:
    """Return an event of version 3 with its halves put together, under the names of 2.2."""
    if payload := child(event, "payload"):
        return child(event, "metadata") | {
            _NAMES_OF_2.get(name, name): value for name, value in payload.items()
        }
    if classification := child(event, "eventClassification"):
        return _joined(event, classification)
    return event


def _joined(event: JsonObject, classification: JsonObject) -> JsonObject:
    shipment = child(event, "shipmentDetails")
    document = child(shipment, "documentReference")
    kind = classification.get("eventTypeCode")
    own = (
        {"documentID": document.get("reference"), "documentTypeCode": document.get("typeCode")}
        if kind == "SHIPMENT"
        else {}
    )
    return {
        **event,
        **classification,
        **child(event, "equipmentDetails"),
        **child(event, "transportDetails"),
        **child(event, "iotDetails"),
        **own,
        "eventType": kind,
        "documentReferences": [document, *as_list(shipment.get("additionalDocumentReferences"))],
        "references": shipment.get("shipmentReferences"),
        "reason": shipment.get("reason"),
    }


def _ids(event: JsonObject) -> tuple[str | None, str | None]:
    """Return the event's own id and the id of the event that it takes back."""
    event_id = text(event.get("eventID"))
    if not child(event, "eventClassification"):
        return event_id, text(event.get("retractedEventID"))
    if text(event.get("eventClassifierCode")) != FACT or event_id is None:
        return None, None
    return (
        (f"{event_id}-retracted", event_id)
        if event.get("isRetracted") is True
        else (event_id, None)
    )


def _retracted_at(event: JsonObject) -> str | None:
    return text(event.get("eventUpdatedDateTime")) if event.get("isRetracted") is True else None


def _statement(event: JsonObject) -> DcsaStatement:
    kind, classifier = text(event.get("eventType")), text(event.get("eventClassifierCode"))
    code = text(event.get(_TYPE_CODES.get(kind or "", "")))
    raw = Raw(type=kind, code=code, reason=classifier, further=_further(event))
    return DcsaStatement(raw, _meaning(raw))


def _meaning(raw: Raw) -> Meaning:
    meaning = CODES.get((raw.type or "", raw.code or ""), UNMAPPED)
    if meaning.kind is Kind.SCAN and (raw.reason != FACT or EMPTY in raw.further):
        return TALK
    if meaning.status is Status.CANCELLED and not _BOOKINGS & set(raw.further):
        return TALK
    return meaning


def _further(event: JsonObject) -> tuple[str, ...]:
    named = ("documentTypeCode", "delayReasonCode", "emptyIndicatorCode", "iotEventCode")
    printed = (*(event.get(name) for name in named), *as_list(event.get("delayReasonCodes")))
    return tuple(found for code in printed if (found := text(code)) is not None)


def _numbers(event: JsonObject) -> tuple[str | None, ...]:
    """Return the numbers of the event's subject, the first kind that is printed; (None,) where there is none."""
    subject = text_unless(
        event.get(_SUBJECTS.get(text(event.get("eventType")) or "", "")), PLACEHOLDER
    )
    if subject is not None:
        return (subject,)
    documents = _values(event, "documentReferences", "documentReference")
    for kind in _DOCUMENTS:
        if named := documents.get(kind):
            return tuple(named)
    references = [
        value for values in _values(event, "references", "reference").values() for value in values
    ]
    return tuple(references[:1]) or (None,)


def _values(event: JsonObject, name: str, prefix: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for member in as_list(event.get(name)):
        if type(member) is not dict:
            continue
        printed = (
            text_unless(member.get(name), PLACEHOLDER)
            for name in (f"{prefix}Value", "value", "reference")
        )
        value = next(filter(None, printed), None)
        values = found.setdefault(
            next(
                filter(
                    None, (text(member.get(name)) for name in (f"{prefix}Type", "type", "typeCode"))
                ),
                "",
            ),
            [],
        )
        if value is not None and value not in values:
            values.append(value)
    return found


def _retraction(reading: Reading, retracted: str) -> Reading:
    corrects = f"{retracted}@{normalize_number(reading.tracking_number or '')}"
    return replace(reading, kind=RETRACTED.kind, status=None, reason=None, corrects=corrects)


def _place(event: JsonObject) -> EventPlace:
    """Return the place; a UN location code begins with its country."""
    location, call = child(event, "eventLocation"), child(event, "transportCall")
    somewhere = location or child(call, "location") or call
    code = text(somewhere.get("UNLocationCode")) or text(call.get("UNLocationCode"))
    coded = (somewhere, call, child(somewhere, "facility"))
    facility = next(filter(None, (text(found.get("facilityCode")) for found in coded)), None)
    address = child(somewhere, "address")
    return place(
        city=text(address.get("city")) or text(somewhere.get("locationName")),
        country=code[:2]
        if code is not None and len(code) == 5
        else address.get("country") or address.get("countryCode"),
        facility=f"{code} {facility}" if code and facility else code or facility,
    )


CARRIER: Final = Carrier(
    carrier_id="dcsa",
    name="DCSA Track & Trace",
    number_fields=(
        *(
            "documentID",
            "equipmentReference",
            "documentReferenceValue",
            "referenceValue",
            "references.value",
        ),
        *("payload.documentReference", "relatedDocumentReferences.value"),
        *(
            "documentReference.reference",
            "additionalDocumentReferences.reference",
            "shipmentReferences.reference",
        ),
    ),
    normalizers={"1": normalize},
    formats=("Track & Trace 2.2 JSON", "Track & Trace 3 JSON", "Track & Trace 3 beta JSON"),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
