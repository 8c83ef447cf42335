"""Aramex: answers of the tracking service (SOAP and its JSON twin).

A scan's code is its update code, then the code of its problem.

Aramex publishes no list of its update codes; the table holds those that public integrations quote.
A code that is not known is read by its text. Times are local to the place, which is printed as
`City, Country`; the JSON twin prints an epoch.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from typing import Final, NamedTuple

from events.carriers import kit

CODES: Final = kit.meanings("aramex_codes.csv")
TEXTS: Final = kit.meanings("aramex_texts.csv")
by_text = kit.by_sentence({words: meaning for (words,), meaning in TEXTS.items()})
CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%-d/%-m/%Y %H:%M:%S"
    ),
    default_zone="Asia/Dubai",
)
PAIR: Final = "KeyValueOfstringArrayOfTrackingResultmFAkxlpY"
_EPOCH: Final = re.compile(
    r"/Date\((?P<milliseconds>-?\d{1,15})(?P<offset>[+-]\d{4})?\)/", re.ASCII
)


class Update(NamedTuple):
    """An update of a waybill, from either format."""

    where: str
    number: str | None
    fields: dict[str, str]


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for found in (
        _from_xml(kit.read_xml(body))
        if kit.is_xml(body)
        else _from_json(kit.read_json(body), rejections)
    ):
        fields, code = found.fields, found.fields.get("UpdateCode")
        at = _place(fields.get("UpdateLocation"))
        raw = kit.Raw(code=code, reason=fields.get("ProblemCode"))
        yield from kit.reading_of(
            kit.Scan(
                where=found.where,
                raw=raw,
                meaning=CODES.get((code or "",))
                or by_text(fields.get("UpdateDescription", ""))
                or kit.UNMAPPED,
                time=_time(fields.get("UpdateDateTime"), at, received_at),
                place=at,
                description=fields.get("UpdateDescription"),
            ),
            fields.get("WaybillNumber") or found.number,
            rejections,
        )


def _time(printed: str | None, at: kit.EventPlace, received_at: datetime) -> kit.PrintedTime | None:
    epoch = _EPOCH.fullmatch(printed or "")
    if epoch is not None:
        found = kit.read_epoch(
            int(epoch["milliseconds"]), milliseconds=True, received_at=received_at
        )
        # the instant is the epoch's; the wall clock, which the SOAP answer prints, enters the id
        return _at_place(found, epoch["offset"])
    return CLOCK.read(printed, at, received_at=received_at)


def _at_place(found: kit.PrintedTime | None, printed: str | None) -> kit.PrintedTime | None:
    """Return the time at the place.

    The offset next to an epoch is that of the place, as is the wall clock of the SOAP answer.
    """
    offset = kit.read_offset(printed) if printed else None
    if found is None or offset is None or found.tz_source is kit.TzSource.RECEIVED:
        return found
    return replace(found, instant=found.instant.astimezone(timezone(offset)), zone=printed)


def _place(printed: str | None) -> kit.EventPlace:
    # from the right: cities have commas too
    city, comma, name = (printed or "").rpartition(",")
    country = kit.country_code(name.strip()) if comma else None
    if country is None or len(country) != 2:
        return kit.place(city=printed)
    return kit.place(city=city, country=country)


def _from_xml(document: kit.Document) -> Iterator[Update]:
    for answer in kit.answers(document):
        if answer.tag not in ("ShipmentTrackingResponse", "Fault"):
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of Aramex"
            )
        results = (
            result
            for list_ in answer.iterfind("TrackingResults")
            # at any depth: SOAP groups the results by waybill as pairs of key and value
            for result in list_.iter("TrackingResult")
        )
        for index, result in enumerate(results, start=1):
            yield Update(f"TrackingResults/TrackingResult[{index}]", None, kit.texts(result))


def _from_json(body: object, rejections: kit.Rejections) -> Iterator[Update]:
    if (
        type(body) is not dict
        or not {"TrackingResults", "HasErrors", "Notifications"} & body.keys()
    ):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Aramex"
        )
    yield from _results(body, "TrackingResults", "", None, rejections)


def _results(
    holder: kit.JsonObject, name: str, where: str, number: str | None, rejections: kit.Rejections
) -> Iterator[Update]:
    """Yield the updates of a member that holds them by waybill, as `Key` and `Value`; SOAP that
    became JSON keeps its names in between.
    """
    for index, member in kit.objects_at(holder, name, where, rejections):
        pointer = f"{where}/{name}/{index}"
        inside = next(
            (found for found in ("Value", "TrackingResult", PAIR) if found in member), None
        )
        if inside is None:
            yield Update(pointer, number, _texts(member))
        else:
            yield from _results(
                member, inside, pointer, kit.text(member.get("Key")) or number, rejections
            )


def _texts(result: dict[str, object]) -> dict[str, str]:
    return {name: found for name, value in result.items() if (found := kit.text(value)) is not None}


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read a known code; where it is not known, its text may be."""
    return CODES.get((raw.code or "",))


CARRIER: Final = kit.Carrier(
    carrier_id="aramex",
    name="Aramex",
    number_fields=(
        "WaybillNumber",
        "TrackingResults.Key",
        f"{PAIR}.Key",
        "NonExistingWaybills",
        "NonExistingWaybills.string",
    ),
    normalizers={"1": normalize},
    formats=("ShipmentTrackingResponse SOAP", "ShipmentTrackingResponse JSON"),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
