"""Chronopost: answers of its tracking service (SOAP) for parcels.

An event lists further facts, such as the receiver. An event with an unknown code is read by its
French sentence (`by_category`), which several codes share; a parcel is a `Colis` in it, in older
ones an `Envoi`.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers import kit

# (level, code): of an `event`, or the `text` of its sentence in lower case.
CODES: Final = kit.meanings("chronopost_codes.csv")
CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="Europe/Paris")
# Names of the fact that holds the receiver, in lower case.
RECEIVERS: Final = frozenset({"consignee's name", "nom du destinataire", "nom du réceptionnaire"})

_APOSTROPHES: Final = str.maketrans({"\u2019": "'", "\u00b4": "'"})
_ENVOI: Final = "envoi "
_COLIS: Final = "colis "

_ANSWERS: Final = ("track", "search")


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for parcel in _parcels(kit.read_xml(body)):
        number = kit.text_at(parcel, "skybillNumber")
        for index, event in kit.elements_at(parcel, "events", "", rejections):
            fields = kit.texts(event)
            code = fields.get("code")
            at = kit.place(city=fields.get("officeLabel"), postal_code=fields.get("zipCode"))
            raw, words = kit.Raw(code=code), fields.get("eventLabel")
            yield from kit.reading_of(
                kit.Scan(
                    where=f"{parcel.tag}/events[{index}]",
                    raw=raw,
                    meaning=_meaning(raw, words or ""),
                    time=CLOCK.read(fields.get("eventDate"), at, received_at=received_at),
                    place=at,
                    description=words,
                    signed_by=_receiver(event),
                ),
                number,
                rejections,
            )


def _parcels(document: kit.Document) -> Iterator[_Element]:
    """Yield the elements that hold events.

    `listEventInfoComp`, `listEvents`, or a member of `listParcel`.
    """
    for answer in kit.answers(document):
        if answer.tag != "Fault" and not answer.tag.startswith(_ANSWERS):
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of Chronopost"
            )
        parents = (event.getparent() for event in answer.iter("events"))
        yield from dict.fromkeys(parent for parent in parents if parent is not None)


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read a known code; an unknown code may be read by the sentence next to it."""
    return CODES.get(("event", raw.code or ""))


def _meaning(raw: kit.Raw, words: str) -> kit.Meaning:
    sentence = kit.collapse(words).translate(_APOSTROPHES).casefold().rstrip(".")
    if sentence.startswith(_ENVOI):
        sentence = _COLIS + sentence.removeprefix(_ENVOI)
    return kit.finest((raw.code, _reread(raw)), (sentence, CODES.get(("text", sentence))))


def _receiver(event: _Element) -> str | None:
    for fact in event.iterfind("infoCompList"):
        if (kit.text_at(fact, "name") or "").casefold() in RECEIVERS:
            return kit.text_at(fact, "value")
    return None


CARRIER: Final = kit.Carrier(
    carrier_id="chronopost",
    name="Chronopost",
    number_fields=("skybillNumber",),
    normalizers={"1": normalize},
    formats=("trackSkybillV2 SOAP",),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
