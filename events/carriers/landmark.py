"""Landmark Global: the XML answer of its Track API, with one or many packages.

A package has two numbers: Landmark's own is the number, that of the end carrier is left out where both are stated. Times are local to the
place of the scan and printed in two ways. Some events have no code: their sentence says what they are, as it does next to a code that is
not known (`by_category`).
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import TimeFormats
from events.parsing.lines import position_in_line
from events.parsing.lists import elements_at
from events.parsing.meanings import Meaning, finest, meanings
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import collapse
from events.parsing.times import Clock
from events.parsing.whereabouts import Journey, origin_of_item
from events.parsing.xml import body_of, read_xml, text_at, texts

CODES: Final = meanings("landmark_codes.csv")
"""(level, code): of an `event`, or the `text` of its sentence in lower case."""

FORMATS: Final = TimeFormats(
    "%-m/%-d/%Y[ %-I:%M[:%S] %p]", "%Y-%m-%d[ %H:%M[:%S][%f]]", "%Y-%m-%dT%H:%M:%S[%f][%z]"
)
CLOCK: Final = Clock(formats=FORMATS, default_zone="Europe/Brussels")

_ROOT: Final = "TrackResponse"
_ERRORS: Final = frozenset({"ErrorResponse", "Errors", "Error", "Fault"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    answer = body_of(read_xml(body))
    if answer is None or answer.tag in _ERRORS:
        return
    if answer.tag != _ROOT:
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "XML, but no TrackResponse of Landmark")
    for index, package in enumerate(answer.iter("Package"), start=1):
        number = text_at(package, "LandmarkTrackingNumber", "TrackingNumber")
        found = readings_of(
            _scans(package, f"Package[{index}]", received_at, rejections), number, rejections
        )
        yield from with_estimate(
            found, estimate(text_at(package, "ExpectedDelivery", "ExpectedDeliveryDate"), FORMATS)
        )


def _scans(
    package: _Element, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    # the number of the post that carries it in the end names its country
    journey = Journey(origin=origin_of_item(text_at(package, "TrackingNumber")))
    for index, event in elements_at(package, "Events/Event", where, rejections):
        fields = texts(event)
        code, words = fields.get("EventCode"), fields.get("Status")
        where_at = position_in_line(fields.get("Location"), two_letters="country")
        raw = Raw(code=code)
        yield Scan(
            where=f"{where}/Event[{index}]",
            raw=raw,
            meaning=_meaning(raw, collapse(words or "").casefold().rstrip(".")),
            time=CLOCK.read(
                fields.get("DateTime"), where_at, received_at=received_at, journey=journey
            ),
            place=where_at,
            description=collapse(words) if words else None,
        )


def _reread(raw: Raw) -> Meaning | None:
    """Read a known code; an unknown one may be read by the sentence next to it."""
    return CODES.get(("event", raw.code or ""))


def _meaning(raw: Raw, sentence: str) -> Meaning:
    return finest((raw.code, _reread(raw)), (sentence, CODES.get(("text", sentence))))


CARRIER: Final = Carrier(
    carrier_id="landmark",
    name="Landmark Global",
    number_fields=("Package.LandmarkTrackingNumber|TrackingNumber",),
    normalizers={"1": normalize},
    formats=("TrackResponse XML",),
    reread=_reread,
    authentication=(ShipperChoice(),),
)
