"""ICS Courier: the SOAP answer of TracePackge (sic), a flat list of scans of any number of parcels.

There are no codes. A status text is matched whole after what stands for a place or an address in it is left out: `*` in the table.
Times are local; ICS works in eastern Canada and names no province but in its texts.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import NOWHERE, EventPlace, Raw, Reading
from events.parsing.formats import TimeFormats
from events.parsing.lines import position_in_line
from events.parsing.meanings import UNMAPPED, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of
from events.parsing.text import collapse
from events.parsing.times import Clock
from events.parsing.xml import Document, body_of, read_xml, texts

CODES: Final = meanings("ics_courier_codes.csv")
"""The text in lower case."""

CLOCK: Final = Clock(
    formats=TimeFormats(
        "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S]]", "%-m/%-d/%Y[ %-I:%M:%S %p]"
    ),
    default_zone="America/Toronto",
    country="CA",
)

PLACEHOLDER: Final = "string"
"""Placeholder for a number in the empty answer of the documentation."""

_BRANCH: Final = re.compile(
    r"(?P<head>(?:at|arrived at|departed) ics branch) (?P<branch>.+?)(?P<tail> for processing)?",
    re.IGNORECASE,
)


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    for index, info in enumerate(_infos(read_xml(body)), start=1):
        fields = texts(info)
        number, words = fields.get("TrackingNum"), fields.get("Status")
        if number == PLACEHOLDER or (number is None and words is None):
            continue
        shape, where_at = _shape(collapse(words or ""))
        yield from reading_of(
            Scan(
                where=f"TrackingInfo[{index}]",
                raw=Raw(),
                meaning=CODES.get((shape,), UNMAPPED),
                time=CLOCK.read(fields.get("StatusDate"), where_at, received_at=received_at),
                place=where_at,
                description=words,
                signed_by=fields.get("Signby"),
            ),
            number,
            rejections,
        )


def _infos(document: Document) -> Iterator[_Element]:
    answer = body_of(document)
    if answer is None or answer.tag == "Fault":
        return
    if not answer.tag.startswith("TracePack"):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "XML, but no answer of ICS Courier")
    for info in answer.iter("TrackingInfo"):
        if len(info) > 0 and info[0].tag != "TrackingInfo":
            yield info


def _shape(words: str) -> tuple[str, EventPlace]:
    """Split a status text into the text without its place, and the place where it is a branch (an address is not kept)."""
    shape = words.lower()
    if shape.startswith("delivered at:"):
        return "delivered at: *", NOWHERE
    branch = _BRANCH.fullmatch(words) if "ics branch" in shape else None
    if branch is not None:
        return f"{branch['head']} *{branch['tail'] or ''}".lower(), position_in_line(
            branch["branch"], country="CA"
        )
    return shape, NOWHERE


CARRIER: Final = Carrier(
    carrier_id="ics_courier",
    name="ICS Courier",
    number_fields=("TrackingNum",),
    normalizers={"1": normalize},
    formats=("TracePackge SOAP",),
    authentication=(ShipperChoice(),),
)
