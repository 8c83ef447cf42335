"""bpost: the itemTracking document (XML), and the answer about items (JSON).

Each `stateInfo` is a scan; `deliveryTime` is the rollup of one of them. A description is the state,
a dash and its detail (`Sorted - sorted_out`): the state reads an unknown code (`by_category`). The
answer about items prints texts without codes, in several languages; the item's present step reads
the newest of them where its text is unknown.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers import kit

# The codes, and the states that stand before the dash of a description.
CODES: Final = kit.meanings("bpost_codes.csv")
STEPS: Final = kit.meanings("bpost_steps.csv")

TEXTS: Final = kit.meanings("bpost_texts.csv")
by_text = kit.by_sentence({words: meaning for (words,), meaning in TEXTS.items()})

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d[%z]", "%Y-%m-%d %H:%M[:%S]"
    ),
    default_zone="Europe/Brussels",
)


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Yield the events of items; exceptions of the service have none."""
    if not kit.is_xml(body):
        yield from _from_json(kit.read_json(body), received_at, rejections)
        return
    for item in _items(kit.read_xml(body)):
        number = kit.text_at(item, "itemCode")
        for index, state in kit.elements_at(item, "stateInfo", "", rejections):
            fields = kit.texts(state)
            code = fields.get("stateCode")
            raw, words = kit.Raw(code=code), fields.get("stateDescription")
            yield from kit.reading_of(
                kit.Scan(
                    where=f"stateInfo[{index}]",
                    raw=raw,
                    meaning=_meaning(raw, words or ""),
                    time=CLOCK.read(fields.get("time"), received_at=received_at),
                    description=words,
                ),
                number,
                rejections,
            )


def _from_json(
    body: object, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    if type(body) is not dict or not {"items", "error"} & body.keys():
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "JSON, but no items of bpost")
    if "items" not in body:
        rejections.note_nothing()
        return
    for index, item in kit.objects_at(body, "items", "", rejections):
        scans = _events(item, f"/items/{index}", received_at, rejections)
        yield from kit.readings_of(scans, kit.text(item.get("itemCode")), rejections)


def _events(
    item: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    step = kit.text(kit.child(item, "activeStep").get("knownProcessStep"))
    of_item = STEPS.get((step or "",), kit.UNMAPPED)
    events = kit.objects_at(item, "events", where, rejections, required=step is None)
    # by the printed time, which sorts as text: the list has no promised order
    newest: str | None = max((_printed(event) or "" for _, event in events), default="")
    for index, event in events:
        key, printed = event.get("key"), _printed(event)
        words = _worded(key)
        # a text would enter the log in clear as a code
        raw = kit.Raw(code=key if type(key) is str and kit.looks_like_code(key) else None)
        known = by_text(words or "")
        yield kit.Scan(
            where=f"{where}/events/{index}",
            raw=raw,
            meaning=known
            or (
                of_item.of_category()
                if printed == newest and of_item.kind is kit.Kind.SCAN
                else kit.UNMAPPED
            ),
            time=CLOCK.read(printed, received_at=received_at),
            place=kit.place(facility=_name(event.get("location"))),
            description=words or kit.text(event.get("description")),
        )
        # only the first of several at the same time: the step is one event's
        newest = newest if printed != newest else None
    if not events and of_item is not kit.UNMAPPED:
        time = CLOCK.read(None, received_at=received_at)
        yield kit.Scan(
            where=f"{where}/activeStep", raw=kit.Raw(code=step), meaning=of_item, time=time
        )


def _printed(event: kit.JsonObject) -> str | None:
    return (
        " ".join(
            part for part in (kit.text(event.get("date")), kit.text(event.get("time"))) if part
        )
        or None
    )


def _worded(key: object) -> str | None:
    """Return the text in English, else in the first available language."""
    if type(key) is not dict:
        return kit.text(key)
    found = {
        name.casefold(): words
        for name, of in key.items()
        if type(of) is dict and (words := kit.text(of.get("description")))
    }
    # the tables know English texts; another language is still a description
    return found.get("en") or next(iter(found.values()), None)


def _name(location: object) -> str | None:
    if type(location) is not dict:
        return kit.text(location)
    return (
        kit.text(location.get("locationName"))
        or kit.text(location.get("en"))
        or next(filter(None, map(kit.text, location.values())), None)
    )


def _items(document: kit.Document) -> Iterator[_Element]:
    for answer in kit.answers(document):
        items = (answer,) if answer.tag == "itemTracking" else tuple(answer.iter("itemTracking"))
        if not items and not answer.tag.endswith(("Exception", "Selection", "Fault")):
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "XML, but no itemTracking of bpost"
            )
        yield from items


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read a known code.

    An unknown code may be read by its state, and a key of an item's event by its text.
    """
    return CODES.get((raw.code or "",)) or STEPS.get((raw.code or "",))


def _meaning(raw: kit.Raw, words: str) -> kit.Meaning:
    # a description is the state, a dash and its detail (`Sorted - sorted_out`)
    state = words.partition(" - ")[0]
    return kit.finest((raw.code, _reread(raw)), (state, CODES.get((state,))))


CARRIER: Final = kit.Carrier(
    carrier_id="bpost",
    name="bpost",
    number_fields=("itemCode",),
    normalizers={"1": normalize},
    formats=("itemTracking XML", "Items JSON"),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
