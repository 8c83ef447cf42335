"""The answers about shipments, as sent and as OpenAPI shows them, for both are made of these types.

A type names its JSON as it is written, so values that come from the database or the log stay as
they are stored there: a status that a later version wrote is shown, not refused.
"""

from datetime import datetime
from typing import Annotated, Any, NotRequired
from uuid import UUID

from pydantic import AwareDatetime, Field, GetPydanticSchema
from pydantic.json_schema import JsonSchemaValue
from typing_extensions import TypedDict

from events.vocabulary import Kind, Reason, Status, TimePrecision, TzSource
from statesvc.bodies.find_bodies import BodyLocation


def text_of(kind: Any) -> GetPydanticSchema:  # noqa: ANN401 - any type that pydantic knows
    """Describe a text that is the written form of a `kind`.

    Words of a vocabulary are shown, and left open: later versions add some.
    """
    return GetPydanticSchema(
        lambda _source, handler: handler.generate_schema(kind),
        lambda schema, handler: _open(handler(schema)),
    )


def _open(described: JsonSchemaValue) -> JsonSchemaValue:
    return (
        {"anyOf": [described, {"type": "string"}]}
        if described.keys() & {"$ref", "enum"}
        else described
    )


StatusText = Annotated[str, text_of(Status)]
ReasonText = Annotated[str, text_of(Reason)]
TimeText = Annotated[str, text_of(AwareDatetime)]
ServiceText = Annotated[
    str,
    Field(description="What the shipper bought, as the carrier names it.", examples=["UPS Ground"]),
]
Personal = Annotated[
    str | None,
    Field(description="Only with `include=personal`; null where the shipment was erased."),
]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]

# Its keys are words of Python, so it cannot be written as a class.
StatusChange = TypedDict(
    "StatusChange",
    {
        "from": Annotated[StatusText, Field(description="The status before.")],
        "to": Annotated[StatusText, Field(description="The status after.")],
    },
)


class EventLocation(TypedDict):
    """Location of a scan, as printed."""

    city: str | None
    region: str | None
    postal_code: Annotated[
        str | None,
        Field(
            description=(
                "As printed with scope `pii`; else its beginning, where one is defined for the"
                " country."
            )
        ),
    ]
    country: Annotated[str | None, Field(description="ISO 3166-1 alpha-2.")]
    facility: Annotated[str | None, Field(description="The carrier's own id of the facility.")]


class PersonalPart(TypedDict, total=False):
    """Members of an event that are shown only where they are asked for, with scope `pii`; else
    there are no such members.
    """

    description: Personal
    signed_by: Personal
    delivery_address: Personal


class StatedEvent(PersonalPart):
    """A canonical event: the carrier's statement."""

    carrier_id: str
    event_id: str
    tracking_number: str
    discriminator: str
    kind: Annotated[str, text_of(Kind)]
    occurred_at: TimeText
    occurred_at_raw: Annotated[str, Field(description="The time as the carrier printed it.")]
    tz_source: Annotated[str, text_of(TzSource)]
    time_precision: Annotated[str, text_of(TimePrecision)]
    status: StatusText | None
    reason: ReasonText | None
    carrier_code: Annotated[
        str | None, Field(description="Type, code and reason as printed, joined by `/`.")
    ]
    by_category: Annotated[
        bool, Field(description="The code is not known; the carrier's own category of it was read.")
    ]
    location: EventLocation
    piece: str | None
    estimated_delivery: str | None
    service: NotRequired[ServiceText | None]
    parcel_carrier_id: NotRequired[
        Annotated[
            str | None,
            Field(description="Of an aggregator: the `carrier_id` of the carrier that it names."),
        ]
    ]
    corrects: Annotated[
        str | None, Field(description="Of a correction: the event that it is about.")
    ]
    anchor: Annotated[
        str | None, Field(description="Of a value that came later: the event that it belongs to.")
    ]


class ErasureState(TypedDict, total=False):
    """Erasure of the personal part: whether it is gone for good."""

    erased: Annotated[bool, Field(description="Only with `include=personal`.")]


class ShipmentEvent(StatedEvent, ErasureState):
    """An event in its shipment's stream."""

    version: int
    recorded_at: Annotated[TimeText, Field(description="When we knew it.")]
    sealed_at: AwareDatetime | None
    log_index: int | None


class EntryPosition(TypedDict):
    """Members that the log binds of any entry, and its position there."""

    batch_id: int
    ordinal: int
    leaf_hash: Hash
    sealed_at: AwareDatetime | None
    log_index: int | None


class MessageSource(TypedDict):
    """The message that said it, and the code that read it."""

    message_id: Annotated[str, text_of(UUID)]
    received_at: TimeText
    body_commitment: Hash
    normalizer: str
    normalizer_version: str
    part_commitment: Annotated[
        Hash | None, Field(description="Binds the personal part without revealing it.")
    ]
    body_place: Annotated[
        BodyLocation,
        Field(description="Where the message's body is; `GET /v1/messages/{message_id}` shows it."),
    ]


class AuditEvent(ShipmentEvent, MessageSource, EntryPosition):
    """An event with its message, normalizer and hashes."""

    previous_hash: Annotated[
        Hash, Field(description="Leaf hash of the shipment's event before; zeros for the first.")
    ]


class AuditTransition(EntryPosition, StatusChange):
    """One change of the status. `sequence` is the version of the event that it names."""

    event_id: str
    sequence: int
    worker: str
    message_id: UUID
    recorded_at: AwareDatetime


class ShipmentObservation(EntryPosition):
    """Something that did not happen, as we noticed it.

    `version`: of the shipment's last event then.
    """

    kind: Annotated[str, Field(examples=["stalled"])]
    since: Annotated[AwareDatetime, Field(description="The deadline that passed.")]
    cause: Annotated[
        str,
        Field(
            description=(
                "The scan, day or time that it counts from: observed again only for another one."
            )
        ),
    ]
    hours: Annotated[int, Field(description="Of the rule.")]
    status: Annotated[str, Field(description="That the shipment was in.")]
    rules: Annotated[int, Field(description="Revision of the rules; 0: the service's defaults.")]
    sequence: Annotated[int, Field(description="Of its notifications; negative.")]
    version: int
    recorded_at: AwareDatetime


class AuditConflict(StatedEvent, MessageSource, EntryPosition):
    """A statement with the same event id and other facts.

    `shipment_id` holds the event, `claimed_shipment_id` is the one that it named.
    """

    shipment_id: UUID
    claimed_shipment_id: UUID
    recorded_at: AwareDatetime
    count: Annotated[
        int | None, Field(description="How often it was said until today; null with `as_of`.")
    ]
    last_seen_at: AwareDatetime | None


class AuditAttempt(EntryPosition):
    """One try at one notification.

    `body_commitment` binds the sent body. Its place is that of the entry of the end, which lists
    all.
    """

    number: int
    started_at: AwareDatetime
    recorded_at: AwareDatetime
    duration_ms: int
    outcome: str
    status_code: int | None
    body_commitment: Hash


class AuditFanout(EntryPosition):
    """The entry by which a subscriber is notified of a change: with the change, or later by a
    replay.
    """

    recorded_at: AwareDatetime
    replayed: Annotated[bool, Field(description="It had been notified before.")]


class AuditNotification(StatusChange):
    """One notification of one subscriber."""

    webhook_id: str
    subscription_id: UUID
    receiver: Annotated[
        str | None,
        Field(
            description=(
                "Name of the subscription, or its host; kept when the subscription is deleted."
            )
        ),
    ]
    type: str
    sequence: int
    occurred_at: AwareDatetime
    created_at: AwareDatetime
    fanouts: list[AuditFanout]
    outcome: Annotated[
        str | None,
        Field(
            description=(
                "How it ended: delivered, given_up, cancelled, coalesced; null: it has not, or its"
                " subscription was deleted."
            )
        ),
    ]
    covered_by: Annotated[
        int | None,
        Field(
            description="Of a coalesced one: the sequence of the notification that stood for it."
        ),
    ]
    waiting: Annotated[
        bool | None, Field(description="Not delivered yet, nor given up; null with `as_of`.")
    ]
    next_attempt_at: AwareDatetime | None
    attempts: Annotated[
        list[AuditAttempt],
        Field(description="Recorded with the end: those at what still waits are not listed yet."),
    ]


class AuditPersonalRead(EntryPosition):
    """An entry about readings of personal fields: the first of an hour, or how many
    followed it within the hour.
    """

    actor: str
    target: Annotated[str, Field(description="The shipment, or one of its messages.")]
    recorded_at: AwareDatetime
    call: Annotated[
        str | None,
        Field(
            description=(
                "Of a first reading: which call; null where the entry counts those that followed."
            )
        ),
    ]
    hour: Annotated[TimeText | None, Field(description="Of a count: the hour that it is about.")]
    further: Annotated[
        int | None, Field(description="Of a count: how many readings followed the first.")
    ]


class ShipmentFields(TypedDict):
    """A shipment's state without its personal field and without the time of its last event."""

    shipment_id: UUID
    carrier_id: str
    tracking_number: str
    discriminator: str
    status: StatusText
    reason: ReasonText | None
    status_since: AwareDatetime | None
    terminal: bool
    flags: list[str]
    version: Annotated[int, Field(description="Grows by one with every event.")]
    recorded_at: datetime
    estimated_delivery: str | None
    service: ServiceText | None
    delivered_at: AwareDatetime | None
    attempts: Annotated[int, Field(description="Delivery attempts.")]


class ShipmentSummary(ShipmentFields):
    """Summary of a shipment of which something was said."""

    last_event_at: Annotated[
        AwareDatetime,
        Field(
            description=(
                "The newest time that the carrier printed; where it never printed one, when its"
                " last statement came."
            )
        ),
    ]


class ListedShipment(ShipmentFields):
    """A shipment as lists show it; or a number with references and without a statement: version
    0.
    """

    last_event_at: Annotated[
        AwareDatetime | None,
        Field(
            description=(
                "The newest time that the carrier printed; where it never printed one, when its"
                " last statement came. Null: nothing was said of it yet, and `recorded_at` is when"
                " references were attached to its number."
            ),
        ),
    ]
    erased: bool


class DetailedShipment(ListedShipment):
    """A shipment as lists show it with `details`."""

    last_location: NotRequired[
        Annotated[
            EventLocation | None,
            Field(
                description=(
                    "Only with `details`: where it was scanned last; null where it never was, or"
                    " the scan is archived."
                )
            ),
        ]
    ]
    order_id: NotRequired[
        Annotated[
            str | None,
            Field(
                description=(
                    "Only with `details`: what a shipper attached to the number as order id."
                )
            ),
        ]
    ]


class OtherShipment(TypedDict):
    """A further shipment of the same number."""

    shipment_id: UUID
    discriminator: str
    status: StatusText
    terminal: bool
    version: int
    last_event_at: AwareDatetime
    recorded_at: AwareDatetime


class OtherSource(OtherShipment):
    """Shipment of the same parcel as another carrier or aggregator pushes it."""

    carrier_id: str
    tracking_number: str


class SameParcel(TypedDict, total=False):
    """Member that is there only where another source pushes the parcel, and without `as_of`."""

    same_parcel: Annotated[
        list[OtherSource],
        Field(
            description=(
                "The parcel's shipments of other carriers and aggregators, the latest first; 100 at"
                " most."
            )
        ),
    ]


class AsOf(TypedDict, total=False):
    """Members for `as_of`: the instant that the answer is about, and the last entry
    that was sealed by then.
    """

    as_of: AwareDatetime
    as_of_log_index: Annotated[int | None, Field(description="Null: nothing was sealed by then.")]
    as_of_clamped: Annotated[
        bool, Field(description="A later instant was asked for than the newest seal.")
    ]


class HistoryPage(AsOf):
    """A page of events in timeline order."""

    items: list[ShipmentEvent]
    observations: Annotated[
        list[ShipmentObservation],
        Field(description="What did not happen: all of them, with the first page."),
    ]
    next_cursor: str | None


class Signer(TypedDict, total=False):
    """Signer of the delivery that counts."""

    signed_by: Personal


class Signed(TypedDict, total=False):
    """Whether somebody signed; left out for a number without statements."""

    is_signed: Annotated[
        bool,
        Field(
            description=(
                "A signer of the delivery that counts is on record; `include=personal` names them."
            )
        ),
    ]


class Shipment(ListedShipment, AsOf, Signed, Signer, SameParcel):
    """A shipment's current state, or the one that we knew."""

    others: Annotated[
        list[OtherShipment],
        Field(description="Further shipments of this number, the latest first; 100 at most."),
    ]


class Audit(TypedDict):
    """Everything on record about one shipment."""

    shipment: Shipment
    events: Annotated[list[AuditEvent], Field(description="In recorded order.")]
    transitions: list[AuditTransition]
    conflicts: list[AuditConflict]
    observations: Annotated[
        list[ShipmentObservation], Field(description="What did not happen, as it was noticed.")
    ]
    notifications: list[AuditNotification]
    readings: Annotated[
        list[AuditPersonalRead], Field(description="Who read personal fields; the newest 1,000.")
    ]
    next_cursor: Annotated[
        str | None, Field(description="Null unless the shipment has more than 1,000 events.")
    ]
