"""DHL24 Poland: getTrackAndTraceInfo (SOAP). Times are Polish; `receivedBy` of the shipment signed its delivery."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import with_signer
from events.parsing.formats import TimeFormats
from events.parsing.lists import elements_at
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of
from events.parsing.text import signer
from events.parsing.times import Clock
from events.parsing.xml import Document, answers, read_xml, text_at, texts

CODES: Final = meanings("dhl_poland_codes.csv")
_meaning: Final = by_code(CODES)
CLOCK: Final = Clock(
    formats=TimeFormats("%Y-%m-%d[ %H:%M[:%S]]", "%Y-%m-%dT%H:%M:%S[%f][%z]"),
    default_zone="Europe/Warsaw",
)


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    for result in _results(read_xml(body)):
        number = text_at(result, "shipmentId")
        found: list[Reading] = []
        for index, item in elements_at(result, "events/item", "", rejections):
            fields = texts(item)
            code = fields.get("status")
            raw = Raw(code=code)
            found += reading_of(
                Scan(
                    where=f"events/item[{index}]",
                    raw=raw,
                    meaning=_meaning(raw),
                    time=CLOCK.read(fields.get("timestamp"), received_at=received_at),
                    place=place(city=fields.get("terminal")),
                    description=fields.get("description"),
                ),
                number,
                rejections,
            )
        yield from with_signer(found, signer(text_at(result, "receivedBy")))


def _results(document: Document) -> Iterator[_Element]:
    for answer in answers(document):
        if answer.tag not in ("getTrackAndTraceInfoResponse", "Fault"):
            raise UnreadableMessageError(
                Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of DHL24 Poland"
            )
        yield from answer.iterfind("getTrackAndTraceInfoResult")


CARRIER: Final = Carrier(
    carrier_id="dhl_poland",
    name="DHL Parcel Poland",
    number_fields=("shipmentId",),
    normalizers={"1": normalize},
    formats=("DHL24 getTrackAndTraceInfo SOAP",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
