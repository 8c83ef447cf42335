"""The handed-over readings of a worker in another language: a JSON document per message.

Its format is in docs/claim-protocol.md. `load(dump(normalized)) == normalized` for any output of
our own normalizers, so that handed-over events get the ids and facts that they would have got here.
`load` is strict: an unknown field is refused, for a misspelt field would change ids for good.
"""

import re
from datetime import UTC, datetime
from typing import Annotated, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    ValidationError,
    model_validator,
)

from events.errors import Cause, UnreadableMessageError
from events.event import NOWHERE, EventPlace, Normalized, PrintedTime, Raw, Reading, Rejection
from events.parsing.json import read_json
from events.parsing.service_name import SERVICE_CHARACTERS_MAX
from events.vocabulary import Kind, Reason, Status, TimePrecision, TzSource

DOCUMENT_BYTES_MAX: Final = 16 * 1024 * 1024
# Number of faults that an error names.
FAULTS_MAX: Final = 3

_INSTANT: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d(?::\d\d)?)", re.ASCII
)
_IDENTITY: Final = r"^(?:[0-9]{8}(?:T[0-9]{4}(?:[0-9]{2}(?:\.[0-9]{6})?)?)?)?$"


def _instant(value: object) -> object:
    if type(value) is datetime:
        return value
    if type(value) is not str or _INSTANT.fullmatch(value) is None:
        raise ValueError(
            "should be a time such as 2026-03-01T14:05:00-05:00, with its offset and at most six"
            " decimals"
        )
    try:
        instant = datetime.fromisoformat(value)
        instant.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("should be a time that exists") from None
    return instant


def _stated(status: Status | None) -> Status | None:
    if status is Status.UNKNOWN:
        raise ValueError("`unknown` is the state before the first event; no event says it")
    return status


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", from_attributes=True)


class _Raw(_Form):
    type: str | None = None
    code: str | None = None
    reason: str | None = None
    further: tuple[str, ...] = ()

    def value(self) -> Raw:
        return Raw(type=self.type, code=self.code, reason=self.reason, further=self.further)


class _PrintedTime(_Form):
    printed: str
    instant: Annotated[datetime, BeforeValidator(_instant)]
    tz_source: TzSource
    precision: TimePrecision
    identity: Annotated[str, Field(pattern=_IDENTITY)]
    zone: str | None = None
    flag: str | None = None

    def value(self) -> PrintedTime:
        return PrintedTime(
            printed=self.printed,
            instant=self.instant,
            tz_source=self.tz_source,
            precision=self.precision,
            identity=self.identity,
            zone=self.zone,
            flag=self.flag,
        )


class _Place(_Form):
    city: str | None = None
    region: str | None = None
    postal_code: str | None = None
    country: str | None = None
    facility: str | None = None

    def value(self) -> EventPlace:
        found = EventPlace(
            city=self.city,
            region=self.region,
            postal_code=self.postal_code,
            country=self.country,
            facility=self.facility,
        )
        return NOWHERE if found == NOWHERE else found


class _Reading(_Form):
    tracking_number: str | None = None
    kind: Kind
    raw: _Raw
    time: _PrintedTime
    place: _Place = _Place()
    status: Annotated[Status | None, AfterValidator(_stated)] = None
    reason: Reason | None = None
    by_category: StrictBool = False
    contradicted: Annotated[Status | None, AfterValidator(_stated)] = None
    discriminator: str = ""
    piece: str | None = None
    native_id: str | None = None
    native_id_per_number: StrictBool = False
    description: str | None = None
    signed_by: str | None = None
    delivery_address: str | None = None
    estimated_delivery: str | None = None
    stamp: str = ""
    corrects: str | None = None
    service: Annotated[str | None, Field(max_length=SERVICE_CHARACTERS_MAX)] = None
    parcel_carrier_id: Annotated[str | None, Field(pattern=r"^[a-z0-9][a-z0-9_]{0,63}$")] = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        match self.kind:
            case Kind.SCAN if self.status is None:
                raise ValueError("`status` is required for a scan")
            case Kind.INFO | Kind.UNMAPPED if self.status is not None:
                raise ValueError("`status` belongs to a scan or a correction")
            case Kind.SCAN | Kind.INFO | Kind.CORRECTION if self.contradicted is not None:
                raise ValueError("`contradicted` belongs to an unmapped event")
            case _ if self.corrects is not None and self.kind is not Kind.CORRECTION:
                raise ValueError("`corrects` belongs to a correction")
        return self

    def value(self) -> Reading:
        return Reading(
            tracking_number=self.tracking_number,
            kind=self.kind,
            raw=self.raw.value(),
            time=self.time.value(),
            place=self.place.value(),
            status=self.status,
            reason=self.reason,
            by_category=self.by_category,
            contradicted=self.contradicted,
            discriminator=self.discriminator,
            piece=self.piece,
            native_id=self.native_id,
            native_id_per_number=self.native_id_per_number,
            description=self.description,
            signed_by=self.signed_by,
            delivery_address=self.delivery_address,
            estimated_delivery=self.estimated_delivery,
            stamp=self.stamp,
            corrects=self.corrects,
            service=self.service,
            parcel_carrier_id=self.parcel_carrier_id,
        )


class _Rejection(_Form):
    # these two are read by humans in the clear, so a bound on what may slip in
    pointer: Annotated[str, Field(max_length=1000)]
    why: Annotated[str, Field(max_length=200)]


class _Document(_Form):
    format: Literal[1]
    readings: tuple[_Reading, ...]
    rejections: tuple[_Rejection, ...] = ()


def dump(normalized: Normalized) -> bytes:
    """Encode the document; fields without a value are left out."""
    document = _Document.model_validate(
        {"format": 1, "readings": normalized.readings, "rejections": normalized.rejections}
    )
    return document.model_dump_json(exclude_defaults=True).encode()


def load(document: bytes) -> Normalized:
    """Decode a document.

    Raises UnreadableMessageError, `normalizer_failed`: names fields and rules, never a value.
    """
    if len(document) > DOCUMENT_BYTES_MAX:
        raise _defect(f"it has more than {DOCUMENT_BYTES_MAX} bytes")
    try:
        found = _Document.model_validate(read_json(document))
    except UnreadableMessageError as error:
        raise _defect(error.detail) from error
    except ValidationError as error:
        raise _defect(_faults(error)) from None
    return Normalized(
        readings=tuple(reading.value() for reading in found.readings),
        rejections=tuple(
            Rejection(pointer=rejection.pointer, why=rejection.why)
            for rejection in found.rejections
        ),
    )


def _faults(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    listed = "; ".join(
        f"{_pointer(fault['loc'], fault['type'])}: {fault['msg'].removeprefix('Value error, ')}"
        for fault in found[:FAULTS_MAX]
    )
    return listed if len(found) <= FAULTS_MAX else f"{listed}; and {len(found) - FAULTS_MAX} more"


def _pointer(loc: tuple[int | str, ...], fault: str) -> str:
    """Return where the fault is, as a JSON pointer.

    The name of an unknown field is foreign text, so it is left out.
    """
    parts = loc[:-1] if fault == "extra_forbidden" else loc
    return "".join(f"/{part}" for part in parts) or "the document"


def _defect(detail: str) -> UnreadableMessageError:
    return UnreadableMessageError(Cause.NORMALIZER_FAILED, f"the hand-over is refused: {detail}")
