"""ICS Courier: the SOAP answer of TracePackge (sic), a flat list of scans of any number of parcels.

There are no codes. A status text is matched whole, without any place or address in it: `*` in the
table. Times are local; ICS works in eastern Canada and names a province only in its texts.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers import kit

# The text in lower case.
CODES: Final = kit.meanings("ics_courier_codes.csv")

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%d[ %H:%M[:%S]]", "%-m/%-d/%Y[ %-I:%M:%S %p]"
    ),
    default_zone="America/Toronto",
    country="CA",
)

# Placeholder for a number in the empty answer of the documentation.
PLACEHOLDER: Final = "string"

_BRANCH: Final = re.compile(
    r"(?P<head>(?:at|arrived at|departed) ics branch) (?P<branch>.+?)(?P<tail> for processing)?",
    re.IGNORECASE,
)


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for index, info in enumerate(_infos(kit.read_xml(body)), start=1):
        fields = kit.texts(info)
        number, words = fields.get("TrackingNum"), fields.get("Status")
        if number == PLACEHOLDER or (number is None and words is None):
            continue
        shape, where_at = _shape(kit.collapse(words or ""))
        yield from kit.reading_of(
            kit.Scan(
                where=f"TrackingInfo[{index}]",
                raw=kit.Raw(),
                meaning=CODES.get((shape,), kit.UNMAPPED),
                time=CLOCK.read(fields.get("StatusDate"), where_at, received_at=received_at),
                place=where_at,
                description=words,
                signed_by=fields.get("Signby"),
            ),
            number,
            rejections,
        )


def _infos(document: kit.Document) -> Iterator[_Element]:
    answer = kit.body_of(document)
    if answer is None or answer.tag == "Fault":
        return
    if not answer.tag.startswith("TracePack"):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "XML, but no answer of ICS Courier"
        )
    for info in answer.iter("TrackingInfo"):
        if len(info) > 0 and info[0].tag != "TrackingInfo":
            yield info


def _shape(words: str) -> tuple[str, kit.EventPlace]:
    """Split a status text into the text without its place, and the place where it is a branch
    (an address is not kept).
    """
    shape = words.lower()
    if shape.startswith("delivered at:"):
        return "delivered at: *", kit.NOWHERE
    branch = _BRANCH.fullmatch(words) if "ics branch" in shape else None
    if branch is not None:
        return f"{branch['head']} *{branch['tail'] or ''}".lower(), kit.position_in_line(
            branch["branch"], country="CA"
        )
    return shape, kit.NOWHERE


CARRIER: Final = kit.Carrier(
    carrier_id="ics_courier",
    name="ICS Courier",
    number_fields=("TrackingNum",),
    normalizers={"1": normalize},
    formats=("TracePackge SOAP",),
    authentication=(kit.ShipperChoice(),),
)
