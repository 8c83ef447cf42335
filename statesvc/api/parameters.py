"""Path and query parameters of the calls about shipments."""

import re
from datetime import date
from typing import Annotated, Final
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from events.carriers import CARRIERS
from events.identity.ids import NAMES_BYTES_MAX
from statesvc.api.personal_reads import Include
from statesvc.http.closed_model import ClosedModel
from statesvc.http.paging import PageParameters
from statesvc.http.removed_fields import removed
from statesvc.http.unknown_carrier import no_such_carrier
from statesvc.log.cursor import CURSOR_PATTERN

MaxStaleness = Annotated[float | None, removed("max_staleness")]
_NUMBER: Final = re.compile(r"[-+ ]?[0-9_.eE+-]+")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# without the number, which may be somebody's: a problem repeats no value
_OF_NUMBER: Final = "that bear a number: /v1/shipments?tracking_number=..."
_PLUS_READ_AS_BLANK: Final = re.compile(r" (?=\d\d:?\d\d$)")


def _with_plus(value: object) -> object:
    """Restore a `+` that arrived as a blank because the query did not escape it.

    In the offset of a time it is unmistakable.
    """
    if not isinstance(value, str):
        return value
    if _NUMBER.fullmatch(value):
        raise PydanticCustomError(
            "instant", "should be a time with its offset, such as 2026-03-01T14:05:00Z"
        )
    return _PLUS_READ_AS_BLANK.sub("+", value) if "T" in value else value


def _day(value: object) -> object:
    """Refuse a number, which pydantic would take as seconds since 1970."""
    if isinstance(value, str) and _NUMBER.fullmatch(value) and not _DAY.fullmatch(value):
        raise PydanticCustomError("day", "should be a day such as 2026-03-01")
    return value


def _shipment_id(value: object) -> object:
    """Point to the list for a carrier or a number in the place of an id."""
    if isinstance(value, str):
        try:
            return UUID(value)
        except ValueError:
            wanted = (
                f"of one carrier: /v1/shipments?carrier_id={value}"
                if value in CARRIERS
                else _OF_NUMBER
            )
            raise PydanticCustomError(
                "shipment_id", "is no shipment id; shipments {wanted}", {"wanted": wanted}
            ) from None
    return value


def known_carrier(carrier_id: str) -> str:
    """Return the carrier_id. Raises ValueError where there is no such carrier."""
    if carrier_id not in CARRIERS:
        raise ValueError(no_such_carrier(carrier_id, CARRIERS))
    return carrier_id


def _cursor_text(value: object) -> object:
    """Explain the form of a log cursor, in place of the pattern."""
    if isinstance(value, str) and not re.fullmatch(CURSOR_PATTERN, value):
        raise PydanticCustomError(
            "cursor",
            "should be a cursor of the log, as an answer gave it, such as 1.42; -1: from the first"
            " entry on",
        )
    return value


Name = Annotated[str, Field(min_length=1, max_length=NAMES_BYTES_MAX, pattern=r"^[^\x00]+$")]
KnownCarrier = Annotated[Name, AfterValidator(known_carrier)]
CursorText = Annotated[str, Field(pattern=CURSOR_PATTERN), BeforeValidator(_cursor_text)]
Discriminator = Annotated[
    str | None,
    Field(
        max_length=NAMES_BYTES_MAX,
        pattern=r"^[^\x00]*$",
        description=(
            "Distinguishes shipments that bear the same number. Left out: the latest of them."
        ),
    ),
]
Day = Annotated[date, BeforeValidator(_day)]
Instant = Annotated[AwareDatetime, BeforeValidator(_with_plus)]
AsOf = Annotated[
    Instant | None,
    Field(
        description=(
            "What we knew then: only entries sealed by that time (RFC 3339 with offset). The same"
            " answer for ever; a time past the newest seal is clamped to it, and the answer"
            " says so."
        )
    ),
]


Why = Annotated[
    str,
    Field(
        max_length=1_000,
        pattern=r"^[^\x00]*$",
        description="Stands in the log for ever: nothing personal.",
    ),
]
RequiredWhy = Annotated[Why, Field(min_length=1)]
NextPart = Annotated[
    str | None, Field(max_length=1024, description="`next_cursor` of the answer before.")
]


class CarrierParameters(ClosedModel):
    """A carrier."""

    carrier_id: Annotated[Name, Field(description="A carrier_id.")]


class NumberParameters(ClosedModel):
    """A tracking number."""

    carrier_id: Name
    tracking_number: Annotated[
        Name, Field(description="In any spelling: case, blanks and hyphens do not matter.")
    ]


class ShipmentParameters(NumberParameters):
    """A shipment."""

    discriminator: Discriminator = None
    as_of: AsOf = None
    include: Include = None


class StateParameters(ShipmentParameters):
    """Selection of a shipment's state."""

    max_staleness: MaxStaleness = None


class HistoryParameters(PageParameters, StateParameters):
    """A page of a shipment's events."""


class AuditParameters(ShipmentParameters):
    """A shipment's audit trail; whole unless it is very long."""

    cursor: NextPart = None


class ShipmentIdParameters(ClosedModel):
    """A shipment by its id."""

    shipment_id: Annotated[
        UUID, BeforeValidator(_shipment_id), Field(description="As feed, stream and lists name it.")
    ]
    as_of: AsOf = None
    include: Include = None
    max_staleness: MaxStaleness = None
