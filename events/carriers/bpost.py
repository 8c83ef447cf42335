"""bpost: the itemTracking document (XML), and the answer about items (JSON).

Each `stateInfo` is a scan; `deliveryTime` is the rollup of one of them. A description is the state, a dash and its detail (`Sorted -
sorted_out`): the state reads a code that is not known (`by_category`). The answer about items prints texts without codes, in several
languages; the step that the item is in reads the newest of them where its text is not known.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers.carrier import Carrier, ShipperChoice
from events.clear_part import looks_like_code
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.formats import TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child, elements_at, objects_at
from events.parsing.meanings import UNMAPPED, Meaning, finest, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of, readings_of
from events.parsing.sentences import by_sentence
from events.parsing.text import text
from events.parsing.times import Clock
from events.parsing.xml import Document, answers, is_xml, read_xml, text_at, texts
from events.vocabulary import Kind

CODES: Final = meanings("bpost_codes.csv")
"""The codes, and the states that stand before the dash of a description."""
STEPS: Final = meanings("bpost_steps.csv")
"""Steps of an item, in JSON."""

TEXTS: Final = meanings("bpost_texts.csv")
by_text = by_sentence({words: meaning for (words,), meaning in TEXTS.items()})

CLOCK: Final = Clock(
    formats=TimeFormats(
        "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d[%z]", "%Y-%m-%d %H:%M[:%S]"
    ),
    default_zone="Europe/Brussels",
)


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one or several items; exceptions of the service say nothing."""
    if not is_xml(body):
        yield from _from_json(read_json(body), received_at, rejections)
        return
    for item in _items(read_xml(body)):
        number = text_at(item, "itemCode")
        for index, state in elements_at(item, "stateInfo", "", rejections):
            fields = texts(state)
            code = fields.get("stateCode")
            raw, words = Raw(code=code), fields.get("stateDescription")
            yield from reading_of(
                Scan(
                    where=f"stateInfo[{index}]",
                    raw=raw,
                    meaning=_meaning(raw, words or ""),
                    time=CLOCK.read(fields.get("time"), received_at=received_at),
                    description=words,
                ),
                number,
                rejections,
            )


def _from_json(body: object, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    if body in ({}, []):
        return
    if type(body) is not dict or not {"items", "error"} & body.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no items of bpost")
    if "items" not in body:
        rejections.note_nothing()
        return
    for index, item in objects_at(body, "items", "", rejections):
        scans = _events(item, f"/items/{index}", received_at, rejections)
        yield from readings_of(scans, text(item.get("itemCode")), rejections)


def _events(
    item: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    step = text(child(item, "activeStep").get("knownProcessStep"))
    of_item = STEPS.get((step or "",), UNMAPPED)
    events = objects_at(item, "events", where, rejections, required=step is None)
    newest: str | None = max((_printed(event) or "" for _, event in events), default="")
    for index, event in events:
        key, printed = event.get("key"), _printed(event)
        words = _worded(key)
        raw = Raw(code=key if type(key) is str and looks_like_code(key) else None)
        known = by_text(words or "")
        yield Scan(
            where=f"{where}/events/{index}",
            raw=raw,
            meaning=known
            or (
                of_item.of_category()
                if printed == newest and of_item.kind is Kind.SCAN
                else UNMAPPED
            ),
            time=CLOCK.read(printed, received_at=received_at),
            place=place(facility=_name(event.get("location"))),
            description=words or text(event.get("description")),
        )
        newest = newest if printed != newest else None
    if not events and of_item is not UNMAPPED:
        time = CLOCK.read(None, received_at=received_at)
        yield Scan(where=f"{where}/activeStep", raw=Raw(code=step), meaning=of_item, time=time)


def _printed(event: JsonObject) -> str | None:
    return (
        " ".join(part for part in (text(event.get("date")), text(event.get("time"))) if part)
        or None
    )


def _worded(key: object) -> str | None:
    """Return the text in English, else in the first language that has one."""
    if type(key) is not dict:
        return text(key)
    found = {
        name.casefold(): words
        for name, of in key.items()
        if type(of) is dict and (words := text(of.get("description")))
    }
    return found.get("en") or next(iter(found.values()), None)


def _name(location: object) -> str | None:
    if type(location) is not dict:
        return text(location)
    return (
        text(location.get("locationName"))
        or text(location.get("en"))
        or next(filter(None, map(text, location.values())), None)
    )


def _items(document: Document) -> Iterator[_Element]:
    for answer in answers(document):
        items = (answer,) if answer.tag == "itemTracking" else tuple(answer.iter("itemTracking"))
        if not items and not answer.tag.endswith(("Exception", "Selection", "Fault")):
            raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "XML, but no itemTracking of bpost")
        yield from items


def _reread(raw: Raw) -> Meaning | None:
    """Read a known code; an unknown one may be read by its state, and a key of an item's event by its text."""
    return CODES.get((raw.code or "",)) or STEPS.get((raw.code or "",))


def _meaning(raw: Raw, words: str) -> Meaning:
    state = words.partition(" - ")[0]
    return finest((raw.code, _reread(raw)), (state, CODES.get((state,))))


CARRIER: Final = Carrier(
    carrier_id="bpost",
    name="bpost",
    number_fields=("itemCode",),
    normalizers={"1": normalize},
    formats=("itemTracking XML", "Items JSON"),
    reread=_reread,
    authentication=(ShipperChoice(),),
)
