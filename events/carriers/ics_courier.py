"""ICS Courier: the SOAP answer of TracePackge (sic), a flat list of scans of any number of parcels.

There are no codes. A status text is matched whole after what stands for a place or an address in it is left out: `*` in the table.
Times are local; ICS works in eastern Canada and names no province but in its texts.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers.carrier import Carrier, SharedHeader, UrlToken
from events.errors import Cause, UnreadableMessageError
from events.event import NOWHERE, Normalized, Place, Raw, Reading, Rejection
from events.reading.formats import TimeFormats
from events.reading.lines import place_in_line
from events.reading.meanings import UNMAPPED, meanings
from events.reading.scans import Scan, readings_of
from events.reading.text import text_unless
from events.reading.times import Clock
from events.reading.xml import Document, body_of, read_xml, texts

CODES: Final = meanings("ics_courier_codes.csv")
"""The text in lower case."""

CLOCK: Final = Clock(
    formats=TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S]]", "%-m/%-d/%Y[ %-I:%M:%S %p]"),
    default_zone="America/Toronto",
)

PLACEHOLDER: Final = frozenset({"string", "datetime"})
"""What stands in place of values in the empty answer of the documentation."""

_BRANCH: Final = re.compile(r"(?P<head>(?:at|arrived at|departed) ics branch) (?P<branch>.+?)(?P<tail> for processing)?", re.IGNORECASE)
_DELIVERED: Final = re.compile(r"delivered at:.*", re.IGNORECASE | re.DOTALL)


def normalize(body: bytes, received_at: datetime) -> Normalized:
    """Events of one answer."""
    rejections: list[Rejection] = []
    readings: list[Reading] = []
    for index, info in enumerate(_infos(read_xml(body)), start=1):
        fields = texts(info)
        number = text_unless(fields.get("TrackingNum"), PLACEHOLDER)
        words = text_unless(fields.get("Status"), PLACEHOLDER)
        if number is None and words is None:
            continue
        shape, where_at = _shape(words or "")
        scan = Scan(
            where=f"TrackingInfo[{index}]",
            raw=Raw(),
            meaning=CODES.get((shape,), UNMAPPED),
            time=CLOCK.read(text_unless(fields.get("StatusDate"), PLACEHOLDER), where_at, received_at=received_at),
            place=where_at,
            description=words,
            signed_by=fields.get("Signby"),
        )
        readings += readings_of((scan,), number, rejections)
    return Normalized(readings=tuple(readings), rejections=tuple(rejections))


def _infos(document: Document) -> Iterator[_Element]:
    answer = body_of(document)
    if answer is None or answer.tag == "Fault":
        return
    if not answer.tag.startswith("TracePack"):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "XML, but no answer of ICS Courier")
    for info in answer.iter("TrackingInfo"):
        if info.find("TrackingInfo") is None and len(info) > 0:
            yield info


def _shape(words: str) -> tuple[str, Place]:
    """A status text without its place, and the place where it is a branch (an address is nobody's business here)."""
    if _DELIVERED.fullmatch(words):
        return "delivered at: *", NOWHERE
    if branch := _BRANCH.fullmatch(words):
        return f"{branch['head']} *{branch['tail'] or ''}".lower(), place_in_line(branch["branch"], country="CA")
    return words.lower(), NOWHERE


CARRIER: Final = Carrier(
    carrier_id="ics_courier",
    name="ICS Courier",
    normalizers={"1": normalize},
    stable="1",
    formats=("TracePackge SOAP",),
    authentication=(SharedHeader(header="X-Webhook-Secret"), UrlToken()),
)
