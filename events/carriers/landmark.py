"""Landmark Global: the XML answer of its Track API, for packages.

A package has two numbers: Landmark's own is the number, that of the end carrier is left out where
both are stated. Times are local to the place of the scan and printed in two ways. An event without
a code, or with an unknown code, is read by its sentence (`by_category`).
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers import kit

# (level, code): of an `event`, or the `text` of its sentence in lower case.
CODES: Final = kit.meanings("landmark_codes.csv")

FORMATS: Final = kit.TimeFormats(
    "%-m/%-d/%Y[ %-I:%M[:%S] %p]", "%Y-%m-%d[ %H:%M[:%S][%f]]", "%Y-%m-%dT%H:%M:%S[%f][%z]"
)
CLOCK: Final = kit.Clock(formats=FORMATS, default_zone="Europe/Brussels")

_ROOT: Final = "TrackResponse"
_ERRORS: Final = frozenset({"ErrorResponse", "Errors", "Error", "Fault"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    answer = kit.body_of(kit.read_xml(body))
    if answer is None or answer.tag in _ERRORS:
        return
    if answer.tag != _ROOT:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "XML, but no TrackResponse of Landmark"
        )
    for index, package in enumerate(answer.iter("Package"), start=1):
        # Landmark's own first: the end carrier's need not be known yet
        number = kit.text_at(package, "LandmarkTrackingNumber", "TrackingNumber")
        found = kit.readings_of(
            _scans(package, f"Package[{index}]", received_at, rejections), number, rejections
        )
        yield from kit.with_estimate(
            found,
            kit.estimate(kit.text_at(package, "ExpectedDelivery", "ExpectedDeliveryDate"), FORMATS),
        )


def _scans(
    package: _Element, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    # the number of the post that carries it in the end names its country
    journey = kit.Journey(origin=kit.origin_of_item(kit.text_at(package, "TrackingNumber")))
    for index, event in kit.elements_at(package, "Events/Event", where, rejections):
        fields = kit.texts(event)
        code, words = fields.get("EventCode"), fields.get("Status")
        where_at = kit.position_in_line(fields.get("Location"), two_letters="country")
        raw = kit.Raw(code=code)
        yield kit.Scan(
            where=f"{where}/Event[{index}]",
            raw=raw,
            meaning=_meaning(raw, kit.collapse(words or "").casefold().rstrip(".")),
            time=CLOCK.read(
                fields.get("DateTime"), where_at, received_at=received_at, journey=journey
            ),
            place=where_at,
            description=kit.collapse(words) if words else None,
        )


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read a known code; an unknown code may be read by the sentence next to it."""
    return CODES.get(("event", raw.code or ""))


def _meaning(raw: kit.Raw, sentence: str) -> kit.Meaning:
    return kit.finest((raw.code, _reread(raw)), (sentence, CODES.get(("text", sentence))))


CARRIER: Final = kit.Carrier(
    carrier_id="landmark",
    name="Landmark Global",
    number_fields=("Package.LandmarkTrackingNumber|TrackingNumber",),
    normalizers={"1": normalize},
    formats=("TrackResponse XML",),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
