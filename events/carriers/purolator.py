"""Purolator: the SOAP answer of its tracking service, by PIN or by reference.

The type of a scan is its code. `Other` is most of them: there the text decides, matched whole. Times are local to the depot, whose name
ends with its province.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.formats import TimeFormats
from events.parsing.lines import position_in_line
from events.parsing.lists import elements_at
from events.parsing.meanings import UNMAPPED, Meaning, codes_without_text, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import collapse
from events.parsing.times import Clock
from events.parsing.xml import body_of, read_xml, text_at, texts

CODES: Final = meanings("purolator_codes.csv")
"""(type, text): the text in lower case without the dash at its end; empty where every text means the same."""

_CLEAR: Final = codes_without_text(CODES)
_WORDED: Final = frozenset(code for code, words in CODES if words)

CLOCK: Final = Clock(
    formats=TimeFormats(
        "%Y-%m-%d[ %H%M%S]", "%Y-%m-%d %H:%M[:%S]", "%Y-%m-%d %H%M", "%Y-%m-%dT%H:%M:%S[%f][%z]"
    ),
    default_zone="America/Toronto",
)


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    answer = body_of(read_xml(body))
    if answer is None or answer.tag == "Fault":
        return
    if not answer.tag.startswith("TrackPackagesBy"):
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of Purolator"
        )
    for index, info in enumerate(answer.iter("TrackingInformation"), start=1):
        scans = _scans(info, f"TrackingInformation[{index}]", received_at, rejections)
        yield from readings_of(scans, text_at(info, "PIN/Value"), rejections)


def _reread(raw: Raw) -> Meaning | None:
    code = raw.code or ""
    return None if code in _WORDED else _CLEAR.get(code, UNMAPPED)


def _scans(
    info: _Element, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, scan in elements_at(info, "Scans/Scan", where, rejections):
        fields = texts(scan)
        code, words = fields.get("ScanType"), fields.get("Description")
        where_at = position_in_line(text_at(scan, "Depot/Name"), country="CA")
        date, time = fields.get("ScanDate"), fields.get("ScanTime")
        shape = collapse(words or "").rstrip(" -").lower()
        yield Scan(
            where=f"{where}/Scan[{index}]",
            raw=Raw(code=code),
            meaning=CODES.get((code or "", shape)) or CODES.get((code or "", ""), UNMAPPED),
            time=CLOCK.read(
                f"{date} {time}" if date and time else date, where_at, received_at=received_at
            ),
            place=where_at,
            description=words,
            signed_by=text_at(scan, "ScanDetails/DeliverySignature"),
        )


CARRIER: Final = Carrier(
    carrier_id="purolator",
    name="Purolator",
    number_fields=("PIN.Value",),
    normalizers={"1": normalize},
    formats=("Tracking service SOAP",),
    reread=_reread,
    authentication=(ShipperChoice(),),
)
