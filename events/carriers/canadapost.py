"""Canada Post: tracking detail (all events) and summary (the newest), as XML in English or French.

The event identifier is a code with leading zeros, not an id. Times are local, with the zone's
abbreviation next to them; midnight without a place means the day only. The signer is printed on the
delivery or on an event of its own (20).
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

from lxml.etree import _Element

from events.carriers import kit

# (code, text in lower case). The text where a code has several meanings; text alone for unknown
# identifiers.
CODES: Final = kit.meanings("canadapost_codes.csv")
# only these can be read again without the sealed text
_CLEAR: Final = kit.codes_without_text(CODES)

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%Y-%m-%d[ %H:%M[:%S]]", "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y%m%d:%H%M%S", "%Y%m%d"
    ),
    default_zone="America/Toronto",
)
# Zones that Canada Post abbreviates, in English and French. The standard name is that of the zone,
# printed in summer too: `CSTNO` is the zone without daylight time.
ZONES: Final = {
    "NST": "America/St_Johns",
    "HNT": "America/St_Johns",
    # the summer's name means that offset in any case; the standard name is printed all year
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

# a closed list, because the field holds states of other countries too
PROVINCES: Final = frozenset(
    {"AB", "BC", "MB", "NB", "NL", "NS", "NT", "NU", "ON", "PE", "QC", "SK", "YT"}
)
_EMPTY: Final = frozenset({"messages", "Fault"})


class Occurrence(NamedTuple):
    """An event, from either format."""

    where: str
    code: str | None
    words: str | None
    at: str | None
    zone: str | None
    city: str | None
    province: str | None
    signatory: str | None


class CanadaPostItem(NamedTuple):
    """A mail piece, from either format."""

    number: str | None
    scans: tuple[Occurrence, ...]
    estimate: str | None
    service: str | None


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for item in _items(kit.read_xml(body), rejections):
        found: list[kit.Reading] = []
        for event in item.scans:
            found += _readings(event, item, received_at, rejections)
        yield from kit.with_estimate(found, kit.estimate(item.estimate, CLOCK.formats))


def _readings(
    event: Occurrence, item: CanadaPostItem, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    at = kit.place(
        city=event.city,
        region=event.province,
        # for mail to other countries the field holds a country or a state of theirs
        country="CA" if event.province in PROVINCES else None,
    )
    meaning = _meaning(event)
    for reading in kit.reading_of(
        kit.Scan(
            where=event.where,
            raw=kit.Raw(code=event.code),
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
        # event 20 brings the signer after the delivery, and moves no status
        signed = event.signatory is not None and meaning.kind is kit.Kind.INFO
        yield replace(reading, signed_by=kit.signer(event.signatory)) if signed else reading


def _meaning(event: Occurrence) -> kit.Meaning:
    words = kit.collapse(event.words or "").casefold()
    code = event.code or ""
    # the pair first, because codes have several meanings; the text alone last, for identifiers that
    # no list has
    return CODES.get((code, words)) or CODES.get((code, "")) or CODES.get(("", words), kit.UNMAPPED)


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    return _CLEAR.get(raw.code or "")


def _time(event: Occurrence, at: kit.EventPlace, received_at: datetime) -> kit.PrintedTime | None:
    # before the place: the abbreviation is the zone in which the time was printed
    found = _zoned(event.at, event.zone.upper()) if event.at and event.zone else None
    found = found or CLOCK.read_with_offset(event.at, event.zone, at, received_at=received_at)
    if (
        found is None
        # at a place midnight may be a true time: sorting runs through the night
        or at != kit.NOWHERE
        or found.tz_source is kit.TzSource.RECEIVED
        or found.instant.time() != kit.MIDNIGHT
    ):
        return found
    return replace(found, precision=kit.TimePrecision.DAY)


@lru_cache(maxsize=8192)
def _zoned(printed: str, zone: str) -> kit.PrintedTime | None:
    """Read a time with a known abbreviation; every push prints those of all older events again."""
    offset = ZONES.get(zone)
    found = (
        None if offset is None else CLOCK.read_with_offset(printed, offset, received_at=kit.EPOCH)
    )
    return (
        replace(found, zone=zone)
        if found is not None and found.tz_source is kit.TzSource.EXPLICIT
        else None
    )


def _items(document: kit.Document, rejections: kit.Rejections) -> Iterator[CanadaPostItem]:
    for answer in kit.answers(document):
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
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "XML, but no tracking of Canada Post"
            )
        for detail in details:
            fields = kit.texts(detail)
            expected = fields.get("changed-expected-date") or fields.get("expected-delivery-date")
            yield CanadaPostItem(
                fields.get("pin"),
                tuple(_occurrences(detail, rejections)),
                expected,
                fields.get("service-name"),
            )
        for index, summary in enumerate(summaries, start=1):
            fields = kit.texts(summary)
            expected = fields.get("changed-expected-date") or fields.get("expected-delivery-date")
            yield CanadaPostItem(
                fields.get("pin"),
                tuple(_newest(fields, f"pin-summary[{index}]")),
                expected,
                fields.get("service-name"),
            )


def _occurrences(detail: _Element, rejections: kit.Rejections) -> Iterator[Occurrence]:
    for index, occurrence in kit.elements_at(
        detail, "significant-events/occurrence", "", rejections
    ):
        fields = kit.texts(occurrence)
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
    """Yield the event of a summary; a summary without an event declares that there is none yet."""
    if "event-type" in fields or "event-description" in fields:
        yield Occurrence(
            where=where,
            code=fields.get("event-type"),
            words=fields.get("event-description"),
            at=fields.get("event-date-time"),
            # a summary prints no zone: the city decides, else Toronto's
            zone=None,
            city=fields.get("event-location"),
            province=None,
            signatory=fields.get("signatory-name"),
        )


CARRIER: Final = kit.Carrier(
    carrier_id="canadapost",
    name="Canada Post",
    number_fields=("pin",),
    normalizers={"1": normalize},
    formats=("tracking-detail XML", "tracking-summary XML"),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
