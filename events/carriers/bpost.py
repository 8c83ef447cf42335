"""bpost: the itemTracking document (XML). Each `stateInfo` is a scan; `deliveryTime` is the rollup of one of them.

A description is the state, a dash and its detail (`Sorted - sorted_out`): the state reads a code that is not known (`by_category`).
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.formats import TimeFormats
from events.parsing.lists import elements_at
from events.parsing.meanings import Meaning, finest, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of
from events.parsing.times import Clock
from events.parsing.xml import Document, answers, read_xml, text_at, texts

CODES: Final = meanings("bpost_codes.csv")
"""The codes, and the states that stand before the dash of a description."""
CLOCK: Final = Clock(formats=TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d[%z]"), default_zone="Europe/Brussels")


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Events of one or several items; exceptions of the service say nothing."""
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


def _items(document: Document) -> Iterator[_Element]:
    for answer in answers(document):
        items = (answer,) if answer.tag == "itemTracking" else tuple(answer.iter("itemTracking"))
        if not items and not answer.tag.endswith(("Exception", "Selection", "Fault")):
            raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "XML, but no itemTracking of bpost")
        yield from items


def _reread(raw: Raw) -> Meaning | None:
    """A code that is not known may be read by its state."""
    return CODES.get((raw.code or "",))


def _meaning(raw: Raw, words: str) -> Meaning:
    state = words.partition(" - ")[0]
    return finest((raw.code, _reread(raw)), (state, CODES.get((state,))))


CARRIER: Final = Carrier(
    carrier_id="bpost",
    name="bpost",
    number_fields=("itemCode",),
    normalizers={"1": normalize},
    formats=("itemTracking XML",),
    reread=_reread,
    authentication=(ShipperChoice(),),
)
