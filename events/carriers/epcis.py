"""GS1 EPCIS 2.0: events of a document, as JSON-LD or XML.

An event may name several things; it belongs to each as a shipment of its own. A code is business
step and disposition, each as a CBV word, URN or web URI. The step decides; a disposition of trouble
outranks it, and any disposition counts where the step is not about transport. `receiving` is a
delivery only where the event's own destination is the place of reading. An `errorDeclaration`
retracts the event of the same id; the retraction gets an id of its own.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from lxml.etree import _Element

from events.carriers import kit

# (field, word): `bizStep` or `disposition`.
CODES: Final = kit.meanings("epcis_codes.csv")

CLOCK: Final = kit.Clock(formats=kit.ISO)
TALK: Final = kit.Meaning(kit.Kind.INFO)
ERROR: Final = kit.Meaning(kit.Kind.CORRECTION)
DELIVERED: Final = kit.Meaning(kit.Kind.SCAN, kit.Status.DELIVERED)
# Dispositions that outrank the step.
TROUBLE: Final = frozenset({"damaged", "destroyed", "disposed", "returned", "stolen"})

EVENTS: Final = (
    "ObjectEvent",
    "AggregationEvent",
    "TransactionEvent",
    "TransformationEvent",
    "AssociationEvent",
)
_MEMBERS: Final = frozenset({*EVENTS, "extension"})
DOCUMENTS: Final = frozenset({"EPCISDocument", "EPCISQueryDocument", "QueryResults"})
_QUALIFIED: Final = re.compile(
    r"\A(?:cbv:|https?://(?:ref\.gs1\.org/cbv|ns\.gs1\.org/cbv|gs1\.org/voc)/)(?:BizStep|Bizstep|"
    r"Disp)-"
)
_ERROR_SUFFIX: Final = "#error"
_PREFIXES: Final = (
    "urn:epcglobal:cbv:bizstep:",
    "urn:epcglobal:cbv:disp:",
    "BizStep-",
    "Bizstep-",
    "Disp-",
)


class EpcisEvent(NamedTuple):
    """An event, from either format.

    `numbers` are the candidates for its subject, the most definite list first.
    """

    where: str
    kind: str
    event_id: str | None
    at: str | None
    offset: str | None
    step: str | None
    disposition: str | None
    read_point: str | None
    location: str | None
    destinations: frozenset[str]
    numbers: tuple[tuple[str, ...], ...]
    is_error: bool


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Yield the events of a document, query result or capture of a single event."""
    for event in (
        _from_xml(kit.read_xml(body), rejections)
        if kit.is_xml(body)
        else _from_json(kit.read_json(body), rejections)
    ):
        time = (
            CLOCK.read_with_offset(event.at, event.offset, received_at=received_at)
            # an offset within the time wins over the field beside it, which repeats it
            if _is_naive(event)
            else None
        )
        time = time or CLOCK.read(event.at, received_at=received_at)
        if time is None:
            # once for the event, not for each of its things
            rejections.add(pointer=event.where, why="a time in no known format")
            continue
        yield from _readings(event, time)


def _is_naive(event: EpcisEvent) -> bool:
    wall = kit.ISO.read(event.at) if event.at else None
    return wall is not None and wall.offset is None


def _readings(event: EpcisEvent, time: kit.PrintedTime) -> Iterator[kit.Reading]:
    raw = kit.Raw(code=event.step, reason=event.disposition, further=(event.kind,))
    arrives = bool({event.location, event.read_point} & event.destinations)
    meaning = ERROR if event.is_error else _meaning(raw, arrives=arrives)
    somewhere: kit.EventPlace = kit.place(facility=event.read_point or event.location)
    # the most definite list alone: a parent stands for what is packed in it
    numbers: tuple[str | None, ...] = next((found for found in event.numbers if found), (None,))
    for number in numbers:
        yield kit.Reading(
            tracking_number=number,
            kind=meaning.kind,
            status=meaning.status,
            reason=meaning.reason,
            raw=raw,
            time=time,
            place=somewhere,
            # under the event's id the retraction would be a duplicate of it
            native_id=f"{event.event_id}{_ERROR_SUFFIX}"
            if event.event_id and event.is_error
            else event.event_id,
            native_id_per_number=True,
            description=event.kind,
            corrects=f"{event.event_id}@{kit.normalize_number(number or '')}"
            if event.event_id and event.is_error
            else None,
        )


def _meaning(raw: kit.Raw, *, arrives: bool) -> kit.Meaning:
    """Read an event. `arrives`: it happened at its own destination."""
    step, disposition = _word(raw.code), _word(raw.reason)
    by_step, by_disposition = CODES.get(("bizStep", step)), CODES.get(("disposition", disposition))
    # a damaged thing may be shipped on: the trouble is the news
    if disposition in TROUBLE and by_disposition is not None:
        return by_disposition
    if step == "receiving" and arrives:
        return DELIVERED
    if by_step is not None:
        return (
            by_disposition
            if by_step.kind is kit.Kind.INFO and by_disposition is not None
            else by_step
        )
    # an unknown step is a dead letter, even where the disposition is known
    if raw.code:
        return kit.UNMAPPED
    return by_disposition or (kit.UNMAPPED if raw.reason else TALK)


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read the part that does not depend on the destinations, which the raw fields lack."""
    meaning = _meaning(raw, arrives=False)
    return meaning if meaning == _meaning(raw, arrives=True) else None


def _word(printed: str | None) -> str:
    """Return `shipping` for `urn:epcglobal:cbv:bizstep:shipping` or
    `https://ref.gs1.org/cbv/BizStep-shipping`.

    GS1 spells `Bizstep-`, too.
    """
    for prefix in _PREFIXES:
        _, found, word = (printed or "").rpartition(prefix)
        if found:
            return word
    return printed or ""


def _bare(printed: str | None) -> str | None:
    """Return a word of version 2 as its compact form prints it, out of a CURIE or a web URI of GS1;
    a URN of version 1 stays.
    """
    return None if printed is None else _QUALIFIED.sub("", printed)


def _from_json(body: object, rejections: kit.Rejections) -> Iterator[EpcisEvent]:
    found = list(_listed(body, rejections))
    known = type(body) is dict and (kit.text(body.get("type")) in DOCUMENTS or "epcisBody" in body)
    if (
        not found
        and not known
        and not (type(body) is dict and {"title", "status", "detail"} & body.keys())
    ):
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "JSON, but no events of EPCIS")
    for where, event in found:
        error = event.get("errorDeclaration")
        yield EpcisEvent(
            where=where,
            kind=kit.text(event.get("type")) or kit.text(event.get("isA")) or EVENTS[0],
            event_id=kit.text(event.get("eventID")),
            at=kit.text(event.get("eventTime")),
            offset=kit.text(event.get("eventTimeZoneOffset")),
            step=_bare(kit.text(event.get("bizStep"))),
            disposition=_bare(kit.text(event.get("disposition"))),
            read_point=_id(event, "readPoint"),
            location=_id(event, "bizLocation"),
            destinations=frozenset(
                name
                for member in _members(event, "destinationList")
                if (name := kit.text(member.get("destination"))) is not None
            ),
            numbers=tuple(
                _names(event.get(name))
                for name in ("parentID", "epcList", "outputEPCList", "inputEPCList", "childEPCs")
            ),
            is_error=type(error) is dict,
        )


def _listed(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is list:
        where, members = "", body
    elif type(body) is dict and kit.text(body.get("type")) in EVENTS:
        where, members = "", [body]
    elif type(body) is dict:
        results = kit.child(body, "epcisBody", "queryResults", "resultsBody")
        if "eventList" in (results or kit.child(body, "epcisBody")):
            rejections.note_nothing()
        inner = (
            "/epcisBody/queryResults/resultsBody/eventList" if results else "/epcisBody/eventList"
        )
        where, members = (
            inner,
            kit.as_list(
                results.get("eventList")
                if results
                else kit.child(body, "epcisBody").get("eventList")
            ),
        )
        members = members or [
            event
            for event in kit.as_list(kit.child(body, "epcisBody").get("event"))
            if type(event) is dict
        ]
    else:
        return
    for index, event in kit.objects(members, where, rejections):
        if "eventTime" in event or kit.text(event.get("type")) in EVENTS:
            yield f"{where}/{index}", event
        else:
            rejections.add(f"{where}/{index}", "no event of EPCIS")


def _id(event: kit.JsonObject, name: str) -> str | None:
    return kit.text(kit.child(event, name).get("id")) or kit.text(event.get(name))


def _members(event: kit.JsonObject, name: str) -> list[kit.JsonObject]:
    return [member for member in kit.as_list(event.get(name)) if type(member) is dict]


def _names(value: object) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            found for member in kit.as_list(value) if (found := kit.text(member)) is not None
        )
    )


def _from_xml(document: kit.Document, rejections: kit.Rejections) -> Iterator[EpcisEvent]:
    for answer in kit.answers(document):
        if (
            answer.tag not in DOCUMENTS
            and answer.tag not in EVENTS
            and answer.tag != "Fault"
            and answer.find(".//EventList") is None
        ):
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "XML, but no document of EPCIS"
            )
        for number, member in enumerate(answer.iterfind(".//EventList/*"), start=1):
            if member.tag not in _MEMBERS:
                rejections.add(f"EventList/*[{number}]", "no event of EPCIS")
        for index, event in enumerate(answer.iter(*EVENTS), start=1):
            yield _xml_event(event, f"EventList/{event.tag}[{index}]")


def _xml_event(event: _Element, where: str) -> EpcisEvent:
    """Read an event of XML; in EPCIS 1.2 later fields lie in `extension` and `baseExtension`."""
    fields = kit.texts(event)
    for name in ("baseExtension", "extension"):
        inner = event.find(name)
        if inner is not None:
            # the event's own fields win over those of the extension
            fields = kit.texts(inner) | fields
    lists = ("epcList", "outputEPCList", "inputEPCList", "childEPCs")
    parent = fields.get("parentID")
    return EpcisEvent(
        where=where,
        kind=event.tag,
        event_id=fields.get("eventID"),
        at=fields.get("eventTime"),
        offset=fields.get("eventTimeZoneOffset"),
        step=_bare(fields.get("bizStep")),
        disposition=_bare(fields.get("disposition")),
        read_point=kit.text_at(event, "readPoint/id"),
        location=kit.text_at(event, "bizLocation/id"),
        destinations=frozenset(
            found
            for member in event.iter("destination")
            if (found := kit.text_at(member, ".")) is not None
        ),
        numbers=((parent,) if parent else (), *(_xml_names(event, name) for name in lists)),
        is_error=next(event.iter("errorDeclaration"), None) is not None,
    )


def _xml_names(event: _Element, name: str) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            found
            for epc in event.iterfind(f"{name}/epc")
            if (found := kit.text_at(epc, ".")) is not None
        )
    )


CARRIER: Final = kit.Carrier(
    carrier_id="epcis",
    name="GS1 EPCIS",
    number_fields=("parentID", "epcList", "outputEPCList", "inputEPCList", "childEPCs", "epc"),
    normalizers={"1": normalize},
    formats=("EPCIS 2.0 JSON-LD", "EPCIS 1.2 and 2.0 XML"),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
