"""DCSA Track & Trace 2.2 and 3: container shipping.

A message holds an event or a list of them. Only classifier ACT is a fact; PLN and EST are `info`.

The beta of version 3 splits an event into `metadata` (its id and type) and `payload`, and version 3
itself into a classification and details of the shipment, the transport and the equipment; all are
read as an event of 2.2. Version 3 prints a new state of an event under its old id, so that only a
fact goes by the id, and retracts an event by printing it again with `isRetracted`.

Event ids are unique only together with the subject of the event: a shipment event is about its
document, an equipment event about its container, a transport event about the documents (else the
references) that it names, each a shipment of its own. An empty container carries no goods, so it
moves no shipment.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from events.carriers import kit

CODES: Final = kit.meanings("dcsa_codes.csv")
CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%Y-%m-%dT%H:%M:%S[%f][%z]",
        "%Y-%m-%dT%H:%M[%z]",
        "%Y/%m/%d %H:%M:%S[ ][%z]",
        "%Y-%m-%d %H:%M:%S[ ][%z]",
    )
)
PLACEHOLDER: Final = frozenset({"string"})
FACT: Final = "ACT"
# An indicator; no other code has this value.
EMPTY: Final = "EMPTY"
TALK: Final = kit.Meaning(kit.Kind.INFO)
RETRACTED: Final = kit.Meaning(kit.Kind.CORRECTION)
TWO_SHIPMENTS: Final = "the transport is kept for its transport document, not for this document"
_IS_EVENT: Final = frozenset({"eventType", "payload", "eventClassification"})
# the later forms are put under the names of 2.2, so that one reader does for all
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
# Types of the documents that name a shipment, the most definite first.
_DOCUMENTS: Final = ("TRD", "BKG", "SHI", "CBR")
# Documents that are cancelled with their shipment; any other is reissued.
_BOOKINGS: Final = frozenset({"BKG", "CBR"})


class DcsaStatement(NamedTuple):
    """The codes of an event as printed and their meaning."""

    raw: kit.Raw
    meaning: kit.Meaning


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, event in _events(kit.read_json(body), rejections):
        statement, at = _statement(event), _place(event)
        event_id, retracted = _ids(event)
        numbers = _numbers(event)
        # noted, not kept for both: a retraction may name one document alone
        if _names_another_shipment(event, numbers):
            rejections.add(f"{where}/shipmentDetails/documentReference", TWO_SHIPMENTS)
        for number in numbers:
            found = kit.reading_of(
                kit.Scan(
                    where=where,
                    raw=statement.raw,
                    meaning=statement.meaning,
                    time=CLOCK.read(
                        kit.text(event.get("eventDateTime")) or _retracted_at(event),
                        at,
                        received_at=received_at,
                    ),
                    place=at,
                    description=kit.text(event.get("changeRemark"))
                    or kit.text(event.get("reason")),
                    native_id=event_id,
                    # an event is told to each of its shipments under the same id
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


def _events(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is dict and "events" in body:
        yield from (
            (f"/events/{index}", _whole(event))
            for index, event in kit.objects_at(body, "events", "", rejections)
        )
    elif type(body) is dict and _IS_EVENT & body.keys():
        yield "", _whole(body)
    elif type(body) is list and any(
        type(member) is dict and _IS_EVENT & member.keys() for member in body
    ):
        yield from (
            (f"/{index}", _whole(event)) for index, event in kit.objects(body, "", rejections)
        )
    # an error of the API, as the specification has it
    elif not (type(body) is dict and {"errors", "httpMethod", "statusCode"} & body.keys()):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no events of DCSA Track & Trace"
        )


def _whole(event: kit.JsonObject) -> kit.JsonObject:
    """Return an event of version 3 with its halves put together, under the names of 2.2."""
    if payload := kit.child(event, "payload"):
        # the payload last: where both halves have a name, its member is about the event
        return kit.child(event, "metadata") | {
            _NAMES_OF_2.get(name, name): value for name, value in payload.items()
        }
    if classification := kit.child(event, "eventClassification"):
        return _joined(event, classification)
    return event


def _joined(event: kit.JsonObject, classification: kit.JsonObject) -> kit.JsonObject:
    shipment = kit.child(event, "shipmentDetails")
    document = kit.child(shipment, "documentReference")
    kind = classification.get("eventTypeCode")
    own = (
        {"documentID": document.get("reference"), "documentTypeCode": document.get("typeCode")}
        # the document is a shipment event's subject; for the others it is one of many references
        if kind == "SHIPMENT"
        else {}
    )
    return {
        **event,
        **classification,
        **kit.child(event, "equipmentDetails"),
        **kit.child(event, "transportDetails"),
        **kit.child(event, "iotDetails"),
        **own,
        # last, over the members of the details that have the same name
        "eventType": kind,
        "documentReferences": [
            document,
            *kit.as_list(shipment.get("additionalDocumentReferences")),
        ],
        "references": shipment.get("shipmentReferences"),
        "reason": shipment.get("reason"),
    }


def _ids(event: kit.JsonObject) -> tuple[str | None, str | None]:
    """Return the event's own id and the id of the event that it takes back."""
    event_id = kit.text(event.get("eventID"))
    # 2.2 and the beta retract by a new event that names the old one
    if not kit.child(event, "eventClassification"):
        return event_id, kit.text(event.get("retractedEventID"))
    # an estimate keeps its id when it changes: by the id its second state would be a conflict
    if kit.text(event.get("eventClassifierCode")) != FACT or event_id is None:
        return None, None
    return (
        # an id of its own: under the event's the retraction would be a duplicate of it
        (f"{event_id}-retracted", event_id)
        if event.get("isRetracted") is True
        else (event_id, None)
    )


def _retracted_at(event: kit.JsonObject) -> str | None:
    # a retraction prints no time of the event, only of its own
    return kit.text(event.get("eventUpdatedDateTime")) if event.get("isRetracted") is True else None


def _statement(event: kit.JsonObject) -> DcsaStatement:
    kind, classifier = kit.text(event.get("eventType")), kit.text(event.get("eventClassifierCode"))
    code = kit.text(event.get(_TYPE_CODES.get(kind or "", "")))
    raw = kit.Raw(type=kind, code=code, reason=classifier, further=_further(event))
    return DcsaStatement(raw, _meaning(raw))


def _meaning(raw: kit.Raw) -> kit.Meaning:
    meaning = CODES.get((raw.type or "", raw.code or ""), kit.UNMAPPED)
    # a plan moves no status, and an empty container on its way back carries nobody's goods
    if meaning.kind is kit.Kind.SCAN and (raw.reason != FACT or EMPTY in raw.further):
        return TALK
    # a bill of lading is voided to be issued again: the shipment goes on
    if meaning.status is kit.Status.CANCELLED and not _BOOKINGS & set(raw.further):
        return TALK
    return meaning


def _further(event: kit.JsonObject) -> tuple[str, ...]:
    named = ("documentTypeCode", "delayReasonCode", "emptyIndicatorCode", "iotEventCode")
    printed = (*(event.get(name) for name in named), *kit.as_list(event.get("delayReasonCodes")))
    return tuple(found for code in printed if (found := kit.text(code)) is not None)


def _numbers(event: kit.JsonObject) -> tuple[str | None, ...]:
    """Return the numbers of the event's subject, the first kind that is printed;
    (None,) where there is none.
    """
    subject = kit.text_unless(
        event.get(_SUBJECTS.get(kit.text(event.get("eventType")) or "", "")), PLACEHOLDER
    )
    if subject is not None:
        return (subject,)
    documents = _values(event, "documentReferences", "documentReference")
    for kind in _DOCUMENTS:
        if named := documents.get(kind):
            # all of one kind: a transport moves each of its documents
            return tuple(named)
    references = [
        value for values in _values(event, "references", "reference").values() for value in values
    ]
    # one alone: several references are names of the same shipment, not several shipments
    return tuple(references[:1]) or (None,)


def _names_another_shipment(event: kit.JsonObject, numbers: tuple[str | None, ...]) -> bool:
    """Return whether a transport of version 3 names a document that is not among its shipments.

    The transport document stays the shipment: a retraction may name that document alone, and
    ids contain it.
    """
    own = kit.text_unless(
        kit.child(event, "shipmentDetails", "documentReference").get("reference"), PLACEHOLDER
    )
    return kit.text(event.get("eventType")) == "TRANSPORT" and own not in (None, *numbers)


def _values(event: kit.JsonObject, name: str, prefix: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for member in kit.as_list(event.get(name)):
        if type(member) is not dict:
            continue
        printed = (
            kit.text_unless(member.get(name), PLACEHOLDER)
            # 2.2, the beta and version 3 name it differently
            for name in (f"{prefix}Value", "value", "reference")
        )
        value = next(filter(None, printed), None)
        values = found.setdefault(
            next(
                filter(
                    None,
                    (kit.text(member.get(name)) for name in (f"{prefix}Type", "type", "typeCode")),
                ),
                "",
            ),
            [],
        )
        # a document that is named twice would get the event twice
        if value is not None and value not in values:
            values.append(value)
    return found


def _retraction(reading: kit.Reading, retracted: str) -> kit.Reading:
    # the id as the log has it: with the number, because it is unique only within that
    corrects = f"{retracted}@{kit.normalize_number(reading.tracking_number or '')}"
    return replace(reading, kind=RETRACTED.kind, status=None, reason=None, corrects=corrects)


def _place(event: kit.JsonObject) -> kit.EventPlace:
    """Return the place; a UN location code begins with its country."""
    location, call = kit.child(event, "eventLocation"), kit.child(event, "transportCall")
    # the event's own place first: a call at a port is the ship's, and coarser
    somewhere = location or kit.child(call, "location") or call
    code = kit.text(somewhere.get("UNLocationCode")) or kit.text(call.get("UNLocationCode"))
    coded = (somewhere, call, kit.child(somewhere, "facility"))
    facility = next(filter(None, (kit.text(found.get("facilityCode")) for found in coded)), None)
    address = kit.child(somewhere, "address")
    return kit.place(
        city=kit.text(address.get("city")) or kit.text(somewhere.get("locationName")),
        # a UN location code begins with its country; one of another length is none
        country=code[:2]
        if code is not None and len(code) == 5
        else address.get("country") or address.get("countryCode"),
        facility=f"{code} {facility}" if code and facility else code or facility,
    )


CARRIER: Final = kit.Carrier(
    carrier_id="dcsa",
    name="DCSA Track & Trace",
    number_fields=(
        "documentID",
        "equipmentReference",
        "documentReferenceValue",
        "referenceValue",
        "references.value",
        "payload.documentReference",
        "relatedDocumentReferences.value",
        "documentReference.reference",
        "additionalDocumentReferences.reference",
        "shipmentReferences.reference",
    ),
    normalizers={"1": normalize},
    formats=("Track & Trace 2.2 JSON", "Track & Trace 3 JSON", "Track & Trace 3 beta JSON"),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
