"""Canada Post: tracking detail (all events) and tracking summary (the newest one), as XML in English or French.

The event identifier is a code with leading zeros, not an id. Times are local, with the zone's abbreviation next to them; midnight without
a place stands for the day. Who signed is printed on the delivery or on an event of its own (20).
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

from lxml.etree import _Element

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import NOWHERE, EventPlace, PrintedTime, Raw, Reading
from events.parsing.enrichment import estimate, with_estimate
from events.parsing.formats import TimeFormats
from events.parsing.lists import elements_at
from events.parsing.meanings import UNMAPPED, Meaning, codes_without_text, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of
from events.parsing.text import collapse, signer
from events.parsing.times import EPOCH, MIDNIGHT, Clock
from events.parsing.xml import Document, answers, read_xml, texts
from events.vocabulary import Kind, TimePrecision, TzSource

CODES: Final = meanings("canadapost_codes.csv")
"""(code, text in lower case): the text where one code means several things; text alone for identifiers that are not known."""
_CLEAR: Final = codes_without_text(CODES)

CLOCK: Final = Clock(
    formats=TimeFormats(
        "%Y-%m-%d[ %H:%M[:%S]]", "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y%m%d:%H%M%S", "%Y%m%d"
    ),
    default_zone="America/Toronto",
)
ZONES: Final = {
    "NST": "America/St_Johns",
    "HNT": "America/St_Johns",
    "NDT": "-02:30",
    "HAT": "-02:30",
    "AST": "America/Halifax",
    "HNA": "America/Halifax",
    "ADT": "-03:00",
    "HAA": "-03:00",
    "EST": "America/Toronto",
    "HNE": "America/Toronto",
    "EDT": "-04:00",
    "HAE": "-04:00",
    "CST": "America/Winnipeg",
    "HNC": "America/Winnipeg",
    "CSTNO": "America/Regina",
    "CDT": "-05:00",
    "HAC": "-05:00",
    "MST": "America/Edmonton",
    "HNR": "America/Edmonton",
    "MDT": "-06:00",
    "HAR": "-06:00",
    "PST": "America/Vancouver",
    "HNP": "America/Vancouver",
    "PDT": "-07:00",
    "HAP": "-07:00",
}
"""Zones that Canada Post abbreviates, in English and French.

The standard name is that of the zone, printed in summer too: `CSTNO` is the one
without daylight time.
"""

PROVINCES: Final = frozenset(
    {"AB", "BC", "MB", "NB", "NL", "NS", "NT", "NU", "ON", "PE", "QC", "SK", "YT"}
)
_EMPTY: Final = frozenset({"messages", "Fault"})


class Occurrence(NamedTuple):
    """One event, from either format."""

    where: str
    code: str | None
    words: str | None
    at: str | None
    zone: str | None
    city: str | None
    province: str | None
    signatory: str | None


class CanadaPostItem(NamedTuple):
    """One mail piece, from either format."""

    number: str | None
    scans: tuple[Occurrence, ...]
    estimate: str | None
    service: str | None


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one or several items."""
    for item in _items(read_xml(body), rejections):
        found: list[Reading] = []
        for event in item.scans:
            found += _readings(event, item, received_at, rejections)
        yield from with_estimate(found, estimate(item.estimate, CLOCK.formats))


def _readings(
    event: Occurrence, item: CanadaPostItem, received_at: datetime, rejections: Rejections
) -> Iterator[Reading]:
    at = place(
        city=event.city,
        region=event.province,
        country="CA" if event.province in PROVINCES else None,
    )
    meaning = _meaning(event)
    for reading in reading_of(
        Scan(
            where=event.where,
            raw=Raw(code=event.code),
            meaning=meaning,
            time=_time(event, at, received_at),
            place=at,
            description=event.words,
            signed_by=event.signatory,
        ),
        item.number,
        rejections,
        service=item.service,
    ):
        signed = event.signatory is not None and meaning.kind is Kind.INFO
        yield replace(reading, signed_by=signer(event.signatory)) if signed else reading


def _meaning(event: Occurrence) -> Meaning:
    words = collapse(event.words or "").casefold()
    code = event.code or ""
    return CODES.get((code, words)) or CODES.get((code, "")) or CODES.get(("", words), UNMAPPED)


def _reread(raw: Raw) -> Meaning | None:
    return _CLEAR.get(raw.code or "")


def _time(event: Occurrence, at: EventPlace, received_at: datetime) -> PrintedTime | None:
    found = _zoned(event.at, event.zone.upper()) if event.at and event.zone else None
    found = found or CLOCK.read_with_offset(event.at, event.zone, at, received_at=received_at)
    if (
        found is None
        or at != NOWHERE
        or found.tz_source is TzSource.RECEIVED
        or found.instant.time() != MIDNIGHT
    ):
        return found
    return replace(found, precision=TimePrecision.DAY)


@lru_cache(maxsize=8192)
def _zoned(printed: str, zone: str) -> PrintedTime | None:
    """Read a time with a known abbreviation; every push prints those of all older events again."""
    offset = ZONES.get(zone)
    found = None if offset is None else CLOCK.read_with_offset(printed, offset, received_at=EPOCH)
    return (
        replace(found, zone=zone)
        if found is not None and found.tz_source is TzSource.EXPLICIT
        else None
    )


def _items(document: Document, rejections: Rejections) -> Iterator[CanadaPostItem]:
    for answer in answers(document):
        details = (
            (answer,) if answer.tag == "tracking-detail" else tuple(answer.iter("tracking-detail"))
        )
        summaries = tuple(answer.iter("pin-summary"))
        if (
            not details
            and not summaries
            and answer.tag not in _EMPTY
            and not answer.tag.startswith("tracking-")
        ):
            raise UnreadableMessageError(
                Cause.UNKNOWN_FORMAT, "XML, but no tracking of Canada Post"
            )
        for detail in details:
            fields = texts(detail)
            expected = fields.get("changed-expected-date") or fields.get("expected-delivery-date")
            yield CanadaPostItem(
                fields.get("pin"),
                tuple(_occurrences(detail, rejections)),
                expected,
                fields.get("service-name"),
            )
        for index, summary in enumerate(summaries, start=1):
            fields = texts(summary)
            expected = fields.get("changed-expected-date") or fields.get("expected-delivery-date")
            yield CanadaPostItem(
                fields.get("pin"),
                tuple(_newest(fields, f"pin-summary[{index}]")),
                expected,
                fields.get("service-name"),
            )


def _occurrences(detail: _Element, rejections: Rejections) -> Iterator[Occurrence]:
    for index, occurrence in elements_at(detail, "significant-events/occurrence", "", rejections):
        fields = texts(occurrence)
        date, time = fields.get("event-date"), fields.get("event-time")
        yield Occurrence(
            where=f"significant-events/occurrence[{index}]",
            code=fields.get("event-identifier"),
            words=fields.get("event-description"),
            at=f"{date} {time}" if date and time else date,
            zone=fields.get("event-time-zone"),
            city=fields.get("event-site"),
            province=fields.get("event-province"),
            signatory=fields.get("signatory-name"),
        )


def _newest(fields: dict[str, str], where: str) -> Iterator[Occurrence]:
    """Yield the event of a summary; one without any says that there is none yet."""
    if "event-type" in fields or "event-description" in fields:
        yield Occurrence(
            where=where,
            code=fields.get("event-type"),
            words=fields.get("event-description"),
            at=fields.get("event-date-time"),
            zone=None,
            city=fields.get("event-location"),
            province=None,
            signatory=fields.get("signatory-name"),
        )


CARRIER: Final = Carrier(
    carrier_id="canadapost",
    name="Canada Post",
    number_fields=("pin",),
    normalizers={"1": normalize},
    formats=("tracking-detail XML", "tracking-summary XML"),
    reread=_reread,
    authentication=(ShipperChoice(),),
)
