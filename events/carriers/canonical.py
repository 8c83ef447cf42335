"""Our own format: the canonical event as a sender states it, by `POST /v1/events` or as a webhook
of the carrier `canonical`.

Here the sender's kind, number, status, reason, time, code and place are the facts, so all of them
are compared when an id comes again. On the webhook path the secret is that of `canonical` alone, so
an event may leave `carrier_id` out or say `canonical`; to speak for another carrier takes an API
key and `POST /v1/events`. An error names fields, never their values.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import islice
from typing import Annotated, Any, Final, Self

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from events.carriers.carrier import Carrier, Hmac
from events.clear_part import Digest
from events.errors import Cause, UnreadableMessageError
from events.event import Event, Normalized, PrintedTime, Raw, Reading
from events.identity.ids import identify
from events.parsing.json import read_json
from events.parsing.meanings import Meaning
from events.parsing.places import place
from events.parsing.rejections import Rejections
from events.parsing.service_name import SERVICE_CHARACTERS_MAX, SERVICE_RULE, service_name
from events.spelling import nearest, normalize_number
from events.vocabulary import Kind, Reason, Status, TimePrecision, TzSource

CARRIER_ID: Final = "canonical"
YEAR_MIN, YEAR_MAX = 1970, 9998
UNKNOWN_MAX: Final = 20
_MEMBER: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")

_RFC_3339: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def _number(value: object) -> object:
    """Accept a number that is printed without quotes, as some are; a float may have lost digits."""
    return str(value) if type(value) is int else value


def _has_number(value: str) -> str:
    if not normalize_number(value):
        raise ValueError("should hold more than blanks and hyphens")
    return value.strip()


def _printable(value: str) -> str:
    if not value.isprintable():
        raise ValueError("should hold no control characters")
    return value


def _instant(value: object) -> datetime:
    if type(value) is not str or _RFC_3339.fullmatch(value) is None:
        raise ValueError(
            "should be a time of RFC 3339 with its offset, such as 2026-03-01T14:05:00-05:00"
        )
    try:
        instant = datetime.fromisoformat(value.upper())
    except ValueError:
        raise ValueError("should be a time that exists") from None
    if not YEAR_MIN <= instant.year <= YEAR_MAX:
        raise ValueError(f"should be in the years {YEAR_MIN} to {YEAR_MAX}")
    return instant


def _date_or_instant(value: object) -> str:
    try:
        if type(value) is str and len(value) == len("2026-03-01"):
            return date.fromisoformat(value).isoformat()
        _instant(value)
    except ValueError:
        raise ValueError(
            "should be a date such as 2026-03-01 or a time of RFC 3339 with its offset"
        ) from None
    return str(value)


def _stated(status: Status | None) -> Status | None:
    if status is Status.UNKNOWN:
        raise ValueError("`unknown` is the state before the first event; no event says it")
    return status


def _service(name: str | None) -> str | None:
    if name is not None and service_name(name) is None:
        raise ValueError(SERVICE_RULE)
    return name


_TIME: Final = re.compile(r"(?=.*[0-9])[A-Za-z0-9 \t:.,/+()\[\]_-]{1,64}", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z]+", re.ASCII)
# Words that times are printed with besides digits; other words may be anybody's.
_TIME_WORD: Final = re.compile(
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
    r"|(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?|[ap]?m?|t|z|st|nd|rd|th|"
    r"date|time|local|h|hrs|utc|gmt"
    r"|(?:[ecmp]|ak|h|a|n)[sd]t|[wec]es?t|bst|ist|msk|[jkhp]kt|[jk]st|sgt|a[ecw][sd]t|nz[sd]t|"
    r"sast)",
    re.ASCII | re.IGNORECASE,
)

Short = Annotated[str, Field(max_length=200)]
Id = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]


class CanonicalLocation(BaseModel):
    """Location of an event; all parts are optional, as the sender knows them."""

    model_config = ConfigDict(extra="ignore")

    city: Short | None = None
    region: Short | None = None
    postal_code: Annotated[Short | None, BeforeValidator(_number)] = None
    country: Annotated[Short | None, Field(description="ISO 3166-1 alpha-2")] = None
    facility: Annotated[Short | None, BeforeValidator(_number)] = None


# Statements that `_agree` and `_stated` refuse, as JSON Schema has it.
_CONTRADICTIONS: Final[list[JsonValue]] = [
    {"properties": {"kind": {"enum": [None, "scan"]}, "status": {"const": None}}},
    {
        "required": ["kind", "status"],
        "properties": {"kind": {"enum": ["info", "unmapped"]}, "status": {"type": "string"}},
    },
    {
        "required": ["kind"],
        "properties": {"kind": {"const": "unmapped"}, "carrier_code": {"const": None}},
    },
    {
        "required": ["corrects"],
        "properties": {"kind": {"not": {"const": "correction"}}, "corrects": {"type": "string"}},
    },
    {"required": ["status"], "properties": {"status": {"const": "unknown"}}},
]


class CanonicalEvent(BaseModel):
    """A carrier event as its sender states it. Fields that are not listed are ignored."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"not": {"anyOf": _CONTRADICTIONS}})

    carrier_id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]{0,63}$")]
    event_id: Annotated[Id, BeforeValidator(_number)]
    tracking_number: Annotated[
        str, Field(max_length=200), AfterValidator(_has_number), BeforeValidator(_number)
    ]
    discriminator: Short = ""
    kind: Kind = Kind.SCAN
    occurred_at: Annotated[datetime, BeforeValidator(_instant)]
    occurred_at_raw: Annotated[
        Short | None,
        Field(
            description=(
                "The time as the carrier printed it; by default, and where it holds other words"
                " than a time does, `occurred_at`"
            )
        ),
    ] = None
    tz_source: TzSource = TzSource.EXPLICIT
    time_precision: TimePrecision = TimePrecision.SECOND
    status: Annotated[Status | None, AfterValidator(_stated)] = None
    reason: Reason | None = None
    carrier_code: Annotated[Short | None, BeforeValidator(_number)] = None
    description: Annotated[str | None, Field(max_length=4000)] = None
    location: CanonicalLocation | None = None
    piece: Annotated[Short | None, BeforeValidator(_number)] = None
    estimated_delivery: Annotated[str | None, BeforeValidator(_date_or_instant)] = None
    service: Annotated[
        Short | None,
        AfterValidator(_service),
        Field(
            description=(
                "What the shipper bought, as the carrier names it: `UPS Ground`, `FEDEX_2_DAY`"
            ),
            max_length=SERVICE_CHARACTERS_MAX,
        ),
    ] = None
    parcel_carrier_id: Annotated[
        str | None,
        Field(
            pattern=r"^[a-z0-9][a-z0-9_]{0,63}$",
            description="Of an aggregator: the carrier that carries the parcel under this number",
        ),
    ] = None
    signed_by: Short | None = None
    corrects: Annotated[
        Id | None,
        Field(description="event_id of the event that a correction takes back or re-reads"),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _as_stated(cls, value: object) -> object:
        """Treat null as an absent field, and keep the sender's own spelling of the time."""
        if type(value) is not dict:
            return value
        stated = {name: part for name, part in value.items() if part is not None}
        if type(stated.get("occurred_at")) is str:
            stated.setdefault("occurred_at_raw", stated["occurred_at"])
        return stated

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.kind is Kind.SCAN and self.status is None:
            raise ValueError("`status` is required for a scan")
        if self.kind in (Kind.INFO, Kind.UNMAPPED) and self.status is not None:
            raise ValueError("`status` belongs to a scan or a correction")
        if self.kind is Kind.UNMAPPED and self.carrier_code is None:
            raise ValueError("`carrier_code` is required for an unmapped event")
        if self.kind is not Kind.CORRECTION and self.corrects is not None:
            raise ValueError("`corrects` belongs to a correction")
        return self


@dataclass(frozen=True, slots=True)
class FieldFault:
    """A fault of an event. `pointer` is a JSON pointer into it, empty for the whole."""

    pointer: str
    why: str


class InvalidEventError(ValueError):
    """An event is not canonical. `faults` name fields and rules, never a value."""

    def __init__(self, faults: tuple[FieldFault, ...]) -> None:
        super().__init__(
            "; ".join(f"{fault.pointer or 'the event'}: {fault.why}" for fault in faults)
        )
        self.faults = faults


def _printed_time(stated: CanonicalEvent) -> str | None:
    """Return the time as printed, unless it holds a word that no time is printed with.

    It is stored in clear in the log.
    """
    printed = stated.occurred_at_raw
    if printed is None or _TIME.fullmatch(printed) is None:
        return None
    return printed if all(map(_TIME_WORD.fullmatch, _WORD.findall(printed))) else None


def read_line(line: bytes, digests: Callable[[str], Digest]) -> Event:
    """Read the event in a JSON object, for `POST /v1/events`. Raises InvalidEventError.

    `digests` are those of the carriers.
    """
    stated = _stated_event(_parsed(line))
    try:
        return identify(
            _reading(stated),
            carrier_id=stated.carrier_id,
            digest=digests(stated.carrier_id),
            with_aliases=False,
        )
    except UnreadableMessageError as error:
        raise InvalidEventError((FieldFault("", error.detail),)) from error


@dataclass(frozen=True, slots=True)
class UnknownMember:
    """An unknown member of an event. `proposal`: the probably intended name."""

    pointer: str
    proposal: str | None


def unknown_members(line: bytes) -> Sequence[UnknownMember]:
    """Return the first unknown members of an event. `line` holds one JSON object."""
    return list(islice(_unknown_members(orjson.loads(line), CanonicalEvent, ""), UNKNOWN_MAX))


def _unknown_members(
    stated: dict[str, Any], model: type[BaseModel], at: str
) -> Iterator[UnknownMember]:
    for name, member in stated.items():
        if name not in model.model_fields:
            # what is no word may be a value in the wrong place, and is not repeated
            pointer = f"{at}/{name}" if _MEMBER.fullmatch(name) else at
            yield UnknownMember(pointer, nearest(name, model.model_fields))
        elif name == "location" and type(member) is dict:
            yield from _unknown_members(member, CanonicalLocation, f"{at}/{name}")


def lines(body: bytes) -> list[tuple[int, bytes]]:
    """Return the lines of an `application/x-ndjson` body that are not blank, with their numbers
    from 1.
    """
    return [
        (number, line) for number, line in enumerate(body.split(b"\n"), start=1) if line.strip()
    ]


# canonical events say their own time
def normalize(body: bytes, received_at: datetime) -> Normalized:  # noqa: ARG001
    """Read the events of a webhook: an object, a list of objects, or lines of them.

    Bad events among good ones are rejections. Raises UnreadableMessageError: `invalid_event`
    where no member is an event.
    """
    readings: list[Reading] = []
    rejections = Rejections()
    for where, value in _members(body):
        try:
            readings.append(
                _reading(
                    _stated_event(
                        _of_canonical(value)
                        if type(value) is not bytes
                        else _of_canonical(_parsed(value))
                    )
                )
            )
        except InvalidEventError as error:
            for fault in error.faults:
                rejections.add(where + fault.pointer, fault.why)
    if not readings and (first := next(iter(rejections), None)):
        raise UnreadableMessageError(
            Cause.INVALID_EVENT, f"{first.pointer or 'the event'}: {first.why}"
        )
    return Normalized(readings=tuple(readings), rejections=tuple(rejections))


def _members(body: bytes) -> Iterator[tuple[str, object]]:
    """Yield the stated events with their pointers.

    Lines come as bytes, so that a bad line does not affect the others.
    """
    found = lines(body)
    if len(found) > 1 and (first := found[0][1].strip()).startswith(b"{") and first.endswith(b"}"):
        yield from ((f"line {number}", line) for number, line in found)
        return
    value = read_json(body)
    if type(value) is list:
        yield from ((f"/{index}", member) for index, member in enumerate(value))
    elif value != {}:
        yield "", value


def _parsed(line: bytes) -> object:
    try:
        return read_json(line)
    except UnreadableMessageError as error:
        raise InvalidEventError((FieldFault("", error.detail),)) from error


def _of_canonical(value: object) -> object:
    if type(value) is not dict:
        return value
    if value.get("carrier_id") not in (None, CARRIER_ID):
        raise InvalidEventError(
            (
                FieldFault(
                    "/carrier_id",
                    "should be absent or `canonical` in a webhook; use POST /v1/events",
                ),
            )
        )
    return {**value, "carrier_id": CARRIER_ID}


def _stated_event(value: object) -> CanonicalEvent:
    if type(value) is not dict:
        raise InvalidEventError((FieldFault("", "should be a JSON object"),))
    try:
        return CanonicalEvent.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise InvalidEventError(
            tuple(
                FieldFault(
                    "".join(f"/{part}" for part in fault["loc"]),
                    fault["msg"].removeprefix("Value error, "),
                )
                for fault in found
            )
        ) from None


def _reading(stated: CanonicalEvent) -> Reading:
    at = stated.location or CanonicalLocation()
    instant = stated.occurred_at
    # What the log compares as well as number, code, time and place: the sender's own reading.
    further = (
        stated.kind,
        stated.status or "",
        stated.reason or "",
        stated.corrects or "",
        instant.astimezone(UTC).isoformat(),
    )
    return Reading(
        tracking_number=stated.tracking_number,
        discriminator=stated.discriminator,
        native_id=stated.event_id,
        kind=stated.kind,
        status=stated.status,
        reason=stated.reason,
        raw=Raw(code=stated.carrier_code, further=tuple(map(str, further))),
        time=PrintedTime(
            printed=_printed_time(stated) or instant.isoformat(),
            instant=instant,
            tz_source=stated.tz_source,
            precision=stated.time_precision,
            identity=instant.strftime("%Y%m%dT%H%M%S")
            + (f".{instant.microsecond:06}" if instant.microsecond else ""),
        ),
        place=place(
            city=at.city,
            region=at.region,
            postal_code=at.postal_code,
            country=at.country,
            facility=at.facility,
        ),
        piece=stated.piece,
        description=stated.description,
        signed_by=stated.signed_by,
        estimated_delivery=stated.estimated_delivery,
        parcel_carrier_id=stated.parcel_carrier_id,
        corrects=stated.corrects,
        service=stated.service,
    )


def _reread(raw: Raw) -> Meaning | None:
    """Read the sender's own words."""
    try:
        kind, status, reason, *_ = raw.further
        return Meaning(
            Kind(kind), Status(status) if status else None, Reason(reason) if reason else None
        )
    except ValueError:
        return None


CARRIER: Final = Carrier(
    carrier_id=CARRIER_ID,
    name="Canonical events",
    number_fields=("tracking_number",),
    normalizers={"1": normalize},
    formats=("Canonical event JSON", "Canonical events as application/x-ndjson"),
    reread=_reread,
    authentication=(Hmac(header="Statesvc-Signature", prefix="sha256="),),
)
