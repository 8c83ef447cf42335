"""Chronopost: answers of its tracking service (SOAP), one or several parcels. An event lists further facts, who received it among them.

An event whose code is not known is read by its French sentence (`by_category`), which several codes share; a parcel is a `Colis` in it, in
older ones an `Envoi`.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.formats import ISO
from events.parsing.lists import elements_at
from events.parsing.meanings import Meaning, finest, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of
from events.parsing.text import collapse
from events.parsing.times import Clock
from events.parsing.xml import Document, answers, read_xml, text_at, texts

CODES: Final = meanings("chronopost_codes.csv")
"""(level, code): of an `event`, or the `text` of its sentence in lower case."""
CLOCK: Final = Clock(formats=ISO, default_zone="Europe/Paris")
RECEIVERS: Final = frozenset({"consignee's name", "nom du destinataire", "nom du réceptionnaire"})
"""Names of the fact that names who received the parcel, in lower case."""

_APOSTROPHES: Final = str.maketrans({"\u2019": "'", "\u00b4": "'"})
_ENVOI: Final = "envoi "
_COLIS: Final = "colis "

_ANSWERS: Final = ("track", "search")


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    for parcel in _parcels(read_xml(body)):
        number = text_at(parcel, "skybillNumber")
        for index, event in elements_at(parcel, "events", "", rejections):
            fields = texts(event)
            code = fields.get("code")
            at = place(city=fields.get("officeLabel"), postal_code=fields.get("zipCode"))
            raw, words = Raw(code=code), fields.get("eventLabel")
            yield from reading_of(
                Scan(
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


def _parcels(document: Document) -> Iterator[_Element]:
    """Yield whatever holds events: `listEventInfoComp`, `listEvents`, one of a `listParcel`."""
    for answer in answers(document):
        if answer.tag != "Fault" and not answer.tag.startswith(_ANSWERS):
            raise UnreadableMessageError(
                Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of Chronopost"
            )
        parents = (event.getparent() for event in answer.iter("events"))
        yield from dict.fromkeys(parent for parent in parents if parent is not None)


def _reread(raw: Raw) -> Meaning | None:
    """Read a known code; an unknown one may be read by the sentence next to it."""
    return CODES.get(("event", raw.code or ""))


def _meaning(raw: Raw, words: str) -> Meaning:
    sentence = collapse(words).translate(_APOSTROPHES).casefold().rstrip(".")
    if sentence.startswith(_ENVOI):
        sentence = _COLIS + sentence.removeprefix(_ENVOI)
    return finest((raw.code, _reread(raw)), (sentence, CODES.get(("text", sentence))))


def _receiver(event: _Element) -> str | None:
    for fact in event.iterfind("infoCompList"):
        if (text_at(fact, "name") or "").casefold() in RECEIVERS:
            return text_at(fact, "value")
    return None


CARRIER: Final = Carrier(
    carrier_id="chronopost",
    name="Chronopost",
    number_fields=("skybillNumber",),
    normalizers={"1": normalize},
    formats=("trackSkybillV2 SOAP",),
    reread=_reread,
    authentication=(ShipperChoice(),),
)
