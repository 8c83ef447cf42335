"""X12 214, the shipment status message of North American carriers, version 4010 and later.

Read with pyx12 (the extra `edi`). An AT7 is a status; the MS1 behind it is its place. Its time code
is a zone of the United States by name; without a time code the place decides.
"""

from collections.abc import Iterator
from datetime import datetime
from importlib import import_module
from io import StringIO
from typing import Any, Final

from events.carriers import kit

# AT7-01, data element 1650.
CODES: Final = kit.meanings("x12_214_codes.csv")
_meaning: Final = kit.by_code(CODES)

CLOCK: Final = kit.Clock(formats=kit.TimeFormats("%Y%m%d[ %H%M[%S]]"))

# AT7-07, data element 623 of release 8010. AT is Alaska's time, TT the Atlantic's.
ZONES: Final = {
    **{f"{hours:02}": f"+{hours:02}:00" for hours in range(1, 13)},
    **{f"{25 - hours:02}": f"-{hours:02}:00" for hours in range(1, 13)},
    "25": "-02:30",
    "26": "-03:30",
    "27": "+05:30",
    "28": "+09:30",
    "29": "+10:30",
    "AD": "-08:00",
    "AS": "-09:00",
    "AT": "America/Anchorage",
    "CD": "-05:00",
    "CS": "-06:00",
    "CT": "America/Chicago",
    "ED": "-04:00",
    "ES": "-05:00",
    "ET": "America/New_York",
    "GM": "Z",
    "HD": "-09:00",
    "HS": "-10:00",
    "HT": "Pacific/Honolulu",
    "MD": "-06:00",
    "MS": "-07:00",
    "MT": "America/Denver",
    "ND": "-02:30",
    "NS": "-03:30",
    "NT": "America/St_Johns",
    "PD": "-07:00",
    "PS": "-08:00",
    "PT": "America/Los_Angeles",
    "TD": "-03:00",
    "TS": "-04:00",
    "TT": "America/Halifax",
    "UT": "Z",
}
# `local time`: the place decides, as without a code
_OF_THE_PLACE: Final = "LT"

_HHMMSS: Final = 6
_WITHOUT_REASON: Final = frozenset({"ns"})

Segment = tuple[str, list[str]]


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    number, status, sets = None, None, 0
    # the end is repeated, so that a status at the end of a cut-off set is not lost
    for at, (tag, values) in enumerate([*_segments(body), ("SE", [])], start=1):
        # the place stands behind its status, so a status waits for the next segment that ends it
        if status is not None and tag in {"MS1", "AT7", "L11", "LX", "SE"}:
            place = _place(values) if tag == "MS1" else kit.NOWHERE
            yield from kit.reading_of(_scan(*status, place, received_at), number, rejections)
            status = None
        if tag == "ST":
            number = None
            sets += 1
            if _value(values, 1) != "214":
                rejections.add(f"/{at}", "a transaction set that is no 214")
        elif tag == "B10":
            # the carrier's reference (B10-01) before the shipper's number
            number = kit.text(_value(values, 1)) or kit.text(_value(values, 2))
        elif tag == "AT7":
            status = (f"/{at}", values)
            code = _value(values, 7) or _OF_THE_PLACE
            if code != _OF_THE_PLACE and code not in ZONES:
                # noted, and the status is read all the same: the place may still decide the zone
                rejections.add(f"/{at}/07", "a time code that data element 623 does not list")
    if not sets:
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "X12, but no transaction set")


def _segments(body: bytes) -> list[Segment]:
    try:
        # imported at the first use: it is an extra, and most installations read no X12
        reader: Any = import_module("pyx12.x12file").X12Reader
        failure: Any = import_module("pyx12.errors").X12Error
    except ImportError:
        raise kit.UnreadableMessageError(
            kit.Cause.UNREADABLE, "X12 is read by an extra: pip install 'statesvc[edi]'"
        ) from None
    # before pyx12, which reads the separators at fixed places of the first segment
    if not body.lstrip().startswith(b"ISA"):
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "no interchange of X12")
    try:
        return [
            (segment.get_seg_id(), [element.format() for element in segment.elements])
            for segment in reader(StringIO(kit.decoded(body.lstrip())))
        ]
    # pyx12 lets these through for an interchange that is cut off
    except (failure, IndexError, ValueError, AttributeError) as error:
        raise kit.UnreadableMessageError(
            kit.Cause.UNREADABLE, "an interchange of X12 that ends early or is malformed"
        ) from error


def _value(values: list[str], number: int) -> str | None:
    return values[number - 1].strip() or None if len(values) >= number else None


def _scan(where: str, values: list[str], place: kit.EventPlace, received_at: datetime) -> kit.Scan:
    # hundredths of a second are in no format of the clock
    day, clock = _value(values, 5), (_value(values, 6) or "")[:_HHMMSS]
    printed = f"{day} {clock}" if day and clock else day
    raw = kit.Raw(
        # an appointment stands in the third element in place of a status in the first
        type=_value(values, 3),
        code=_value(values, 1),
        reason=kit.text_unless(_value(values, 2), _WITHOUT_REASON),
    )
    zone = ZONES.get(_value(values, 7) or "")
    return kit.Scan(
        where=where,
        raw=raw,
        meaning=kit.Meaning(kit.Kind.INFO) if raw.code is None else _meaning(raw),
        time=CLOCK.read_with_offset(printed, zone, place, received_at=received_at),
        place=place,
    )


def _place(values: list[str]) -> kit.EventPlace:
    return kit.place(city=_value(values, 1), region=_value(values, 2), country=_value(values, 3))


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    return _meaning(raw) if raw.code else None


CARRIER: Final = kit.Carrier(
    carrier_id="x12_214",
    name="X12 214",
    number_fields=("B10.01|02",),
    normalizers={"1": normalize},
    formats=("X12 214",),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
