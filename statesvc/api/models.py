"""The answers about shipments, as OpenAPI shows them. Answers are built as plain documents; a test compares the two."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from events.vocabulary import Kind, Reason, Status, TimePrecision, TzSource
from statesvc.bodies.find_bodies import BodyLocation

Personal = Annotated[str | None, Field(description="Only with scope `pii`; null where the shipment was erased.")]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Location(BaseModel):
    """Where a scan happened, as printed."""

    model_config = ConfigDict(extra="forbid")

    city: str | None
    region: str | None
    postal_code: str | None
    country: Annotated[str | None, Field(description="ISO 3166-1 alpha-2.")]
    facility: Annotated[str | None, Field(description="The carrier's own id of the facility.")]


class Statement(BaseModel):
    """A canonical event: what the carrier said."""

    model_config = ConfigDict(extra="forbid")

    carrier_id: str
    event_id: str
    tracking_number: str
    discriminator: str
    kind: Kind
    occurred_at: AwareDatetime
    occurred_at_raw: Annotated[str, Field(description="The time as the carrier printed it.")]
    tz_source: TzSource
    time_precision: TimePrecision
    status: Status | None
    reason: Reason | None
    carrier_code: Annotated[str | None, Field(description="Type, code and reason as printed, joined by `/`.")]
    by_category: Annotated[bool, Field(description="The code is not known; the carrier's own category of it was read.")]
    location: Location
    piece: str | None
    estimated_delivery: str | None
    corrects: Annotated[str | None, Field(description="Of a correction: the event that it is about.")]
    anchor: Annotated[str | None, Field(description="Of a value that came later: the event that it belongs to.")]
    description: Personal = None
    signed_by: Personal = None
    delivery_address: Personal = None


class Event(Statement):
    """An event in its shipment's stream."""

    version: int
    recorded_at: Annotated[AwareDatetime, Field(description="When we knew it.")]
    sealed_at: AwareDatetime | None
    log_index: int | None
    erased: Annotated[bool, Field(description="Only with scope `pii`.")] = False


class Entry(BaseModel):
    """What the log binds of any entry, and where it stands."""

    model_config = ConfigDict(extra="forbid")

    batch_id: int
    ordinal: int
    leaf_hash: Hash
    sealed_at: AwareDatetime | None
    log_index: int | None


class Source(BaseModel):
    """The message that said it, and the code that read it."""

    message_id: UUID
    received_at: AwareDatetime
    body_commitment: Hash
    normalizer: str
    normalizer_version: str
    part_commitment: Annotated[Hash | None, Field(description="Binds the personal part without revealing it.")]
    body_place: Annotated[BodyLocation, Field(description="Where the message's body is; `GET /v1/messages/{message_id}` shows it.")]


class AuditEvent(Event, Source, Entry):
    """An event with its message, normalizer and hashes."""

    previous_hash: Annotated[Hash, Field(description="Leaf hash of the shipment's event before; zeros for the first.")]


class AuditTransition(Entry):
    """One change of the status. `sequence` is the version of the event that it names."""

    from_status: Annotated[Status, Field(alias="from")]
    to_status: Annotated[Status, Field(alias="to")]
    event_id: str
    sequence: int
    worker: str
    message_id: UUID
    recorded_at: AwareDatetime


class AuditConflict(Statement, Source, Entry):
    """The same event id with other facts. `shipment_id` holds the event, `claimed_shipment_id` is the one that the message named."""

    shipment_id: UUID
    claimed_shipment_id: UUID
    recorded_at: AwareDatetime
    count: Annotated[int | None, Field(description="How often it was said until today; null with `as_of`.")]
    last_seen_at: AwareDatetime | None


class AuditAttempt(Entry):
    """One try at one notification. `body_commitment` binds what was sent."""

    number: int
    started_at: AwareDatetime
    recorded_at: AwareDatetime
    duration_ms: int
    outcome: str
    status_code: int | None
    body_commitment: Hash


class AuditNotification(BaseModel):
    """One thing told to one subscriber."""

    model_config = ConfigDict(extra="forbid")

    webhook_id: str
    subscription_id: UUID
    type: str
    from_status: Annotated[Status, Field(alias="from")]
    to_status: Annotated[Status, Field(alias="to")]
    sequence: int
    occurred_at: AwareDatetime
    created_at: AwareDatetime
    waiting: Annotated[bool | None, Field(description="Not delivered yet, nor given up; null with `as_of`.")]
    next_attempt_at: AwareDatetime | None
    attempts: list[AuditAttempt]


class ListedShipment(BaseModel):
    """A shipment as lists show it: without its personal field."""

    model_config = ConfigDict(extra="forbid")

    shipment_id: UUID
    carrier_id: str
    tracking_number: str
    discriminator: str
    status: Status
    reason: Reason | None
    status_since: AwareDatetime | None
    terminal: bool
    flags: list[str]
    version: Annotated[int, Field(description="Grows by one with every event.")]
    last_event_at: AwareDatetime
    recorded_at: datetime
    estimated_delivery: str | None
    delivered_at: AwareDatetime | None
    attempts: Annotated[int, Field(description="Delivery attempts.")]
    erased: bool


class OtherShipment(BaseModel):
    """A further shipment of the same number."""

    model_config = ConfigDict(extra="forbid")

    shipment_id: UUID
    discriminator: str
    status: Status
    terminal: bool
    version: int
    last_event_at: AwareDatetime
    recorded_at: AwareDatetime


class AsOf(BaseModel):
    """Only where `as_of` was asked for: the instant that the answer is about, and the last entry that was sealed by then."""

    as_of: AwareDatetime | None = None
    as_of_log_index: Annotated[int | None, Field(description="Null: nothing was sealed by then.")] = None
    as_of_clamped: Annotated[bool | None, Field(description="A later instant was asked for than the newest seal.")] = None


class HistoryPage(AsOf):
    """A page of events in timeline order."""

    model_config = ConfigDict(extra="forbid")

    items: list[Event]
    next_cursor: str | None


class Shipment(ListedShipment, AsOf):
    """A shipment's current state, or the one that we knew."""

    signed_by: Personal = None
    others: Annotated[list[OtherShipment], Field(description="Further shipments of this number, the latest first; 100 at most.")]


class Audit(BaseModel):
    """Everything on record about one shipment."""

    model_config = ConfigDict(extra="forbid")

    shipment: Shipment
    events: Annotated[list[AuditEvent], Field(description="In recorded order.")]
    transitions: list[AuditTransition]
    conflicts: list[AuditConflict]
    notifications: list[AuditNotification]
    next_cursor: Annotated[str | None, Field(description="Null unless the shipment has more than 1,000 events.")]
