"""The two shapes of a carrier's statement: as a normalizer reads it, and as the log stores it.

A normalizer yields `Reading`s (pure, without identity); `events.identity.ids.identify` turns each
into an `Event`. Both are values, without I/O or a clock.

`value` makes them frozen dataclasses to the type checker, which refuses assignment, and plain
dataclasses at run time: a frozen dataclass sets each field through `object.__setattr__`, and at a
hundred and fifty fields an event that was a tenth of the worker's time. `EventPlace` and `Raw` are
tuples: they are the keys of caches, and a tuple is hashed and compared in C.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import UUID

from events.vocabulary import Kind, Reason, Status, TimePrecision, TzSource

if TYPE_CHECKING:
    from dataclasses import dataclass as value
else:
    from dataclasses import dataclass

    # the type checker sees `dataclass`
    def value(*, frozen: bool, **options: Any):  # noqa: ANN201, ANN401
        """Declare a dataclass that compares and hashes like a frozen one."""
        return dataclass(unsafe_hash=frozen, **options)


__all__ = [
    "NOT_PERSONAL",
    "NOWHERE",
    "Event",
    "EventPlace",
    "Normalized",
    "Numbered",
    "Personal",
    "PrintedTime",
    "Raw",
    "Reading",
    "Rejection",
    "value",
]


@value(frozen=True, slots=True, kw_only=True)
class PrintedTime:
    """A point in time as a carrier printed it.

    `printed` is the carrier's own text (date and time joined by a blank where they are two
    fields); `local` is the printed wall clock, without zone (None where only an epoch or no
    time is printed); `instant` is timezone-aware in the offset that `tz_source` explains;
    `fields` lists the printed parts, for the derived id.
    """

    printed: str
    instant: datetime
    tz_source: TzSource
    precision: TimePrecision
    identity: str
    """`YYYYMMDDTHHMMSS[.ffffff]` of the wall clock with absent parts left out; an epoch as UTC.
    Never changed once landed.
    """
    zone: str | None = None
    """Zone or offset as printed, None where the carrier printed none."""
    flag: str | None = None
    """`ambiguous` or `shifted` where daylight saving made the wall clock ambiguous or
    inexistent.
    """


class EventPlace(NamedTuple):
    """Place of a scan, as printed and trimmed.

    `country` is ISO 3166-1 alpha-2 where the carrier allows it to be known. An `Event` holds
    only the beginning of the postcode; the whole of it is sealed.
    """

    city: str | None = None
    region: str | None = None
    postal_code: str | None = None
    country: str | None = None
    facility: str | None = None
    """The carrier's own id of the facility."""


NOWHERE = EventPlace()


class Raw(NamedTuple):
    """The carrier's own words, stored so that an event can be re-read without its message.

    Status text is personal: not here.
    """

    type: str | None = None
    code: str | None = None
    reason: str | None = None
    further: tuple[str, ...] = ()


@value(frozen=True, slots=True, kw_only=True)
class Reading:
    """A carrier's statement as its normalizer read it, before it has an identity.

    `tracking_number` is None where the message names none (an answer to a request that did).
    `native_id` is the carrier's own id of the scan, unique per carrier; set
    `native_id_per_number` where it is unique only per tracking number. `signed_by`,
    `estimated_delivery` are enrichment: not part of the identity, never a conflict; `stamp` is
    the carrier's own update time of that enrichment as printed, or empty.
    """

    tracking_number: str | None
    kind: Kind
    raw: Raw
    time: PrintedTime
    place: EventPlace = NOWHERE
    status: Status | None = None
    reason: Reason | None = None
    by_category: bool = False
    contradicted: Status | None = None
    """Status in the text of an unmapped scan, where its code names another status."""
    discriminator: str = ""
    piece: str | None = None
    native_id: str | None = None
    native_id_per_number: bool = False
    description: str | None = None
    signed_by: str | None = None
    delivery_address: str | None = None
    estimated_delivery: str | None = None
    stamp: str = ""
    corrects: str | None = None
    service: str | None = None
    """Service that the shipper bought, as the carrier names it.

    Not part of the identity, and never a conflict.
    """
    parcel_carrier_id: str | None = None
    """Carrier that an aggregator names, if it is ours. Not part of the identity."""


@value(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A member of a readable message that is not an event (a null in a list, a scan without
    any code, text or time).
    """

    pointer: str
    """Position in the message, as a JSON pointer or element path; holds no value of the message."""
    why: str


@value(frozen=True, slots=True, kw_only=True)
class Normalized:
    """The content of a message.

    Without readings and rejections it is a notice or an empty answer (`empty`).
    """

    readings: tuple[Reading, ...] = ()
    rejections: tuple[Rejection, ...] = ()


@value(frozen=True, slots=True, kw_only=True)
class Personal:
    """The part of an event that may name a person; sealed before it is stored, never logged.

    `facility` and `raw` are as printed where a text is in place of a code; None where the clear
    fields equal the printed ones.
    """

    description: str | None = None
    signed_by: str | None = None
    delivery_address: str | None = None
    postal_code: str | None = None
    facility: str | None = None
    raw: Raw | None = None

    def __bool__(self) -> bool:
        return self != NOT_PERSONAL


NOT_PERSONAL = Personal()


class Numbered(NamedTuple):
    """A tracking number as printed and as it is compared, and the shipment that it names."""

    printed: str
    number: str
    shipment_id: UUID


@value(frozen=True, slots=True, kw_only=True)
class Enrichment:
    """A value that a scan carries besides its facts, by its keyed digest.

    `event_ids`: of the `info` events that it would be, one for each id of its scan.
    """

    field: Literal["signed_by", "estimated_delivery"]
    digest: bytes
    event_ids: tuple[str, ...]


@value(frozen=True, slots=True, kw_only=True)
class Event:
    """A carrier event in canonical form: a reading with its identity.

    Field names are those of the JSON contract. All but `personal` is in clear in the log
    (`events.clear_part`).
    """

    carrier_id: str
    event_id: str
    tracking_number: str
    discriminator: str
    numbered: Numbered
    """Of tracking number and discriminator. Not written to the log, which has the parts."""
    kind: Kind
    occurred_at: datetime
    occurred_at_raw: str
    tz_source: TzSource
    time_precision: TimePrecision
    status: Status | None
    reason: Reason | None
    carrier_code: str | None
    raw: Raw
    raw_zone: str | None
    location: EventPlace
    piece: str | None = None
    by_category: bool = False
    time_flag: str | None = None
    estimated_delivery: str | None = None
    service: str | None = None
    parcel_carrier_id: str | None = None
    corrects: str | None = None
    anchor: str | None = None
    """Event that an enrichment (`e1-`) belongs to."""
    stamp: str = ""
    personal: Personal = NOT_PERSONAL
    raw_wall: str | None = None
    """The wall clock as printed, where `occurred_at` shows another because daylight saving skipped
    it.
    """
    raw_text: str | None = None
    """The keyed digest of the text, where no other field distinguishes the scan."""
    contradicted: Status | None = None
    """As in `Reading`. Not written to the log."""
    aliases: tuple[str, ...] = ()
    """Ids under which another envelope or an older recipe may have brought the same scan.

    Not written to the log.
    """
    facts_digest: bytes = b""
    """Of the facts behind an id of the carrier's own; a derived id is its facts."""
    parcel_id: UUID | None = None
    """The shipment id of the parcel, where the message prints another than the event's own."""
    enrichments: tuple[Enrichment, ...] = ()
    """Not written to the log, which has them beside the id."""
