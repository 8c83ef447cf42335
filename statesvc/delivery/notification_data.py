"""Types of a notification's `data`: both the sent bodies and the documentation are made of them."""

from typing import Annotated, Literal, NotRequired
from uuid import UUID

from pydantic import Field
from typing_extensions import TypedDict

from statesvc.shipments.models import ShipmentSummary, Signer, StatedEvent, StatusChange, TimeText


class GapData(TypedDict):
    """The notifications of the same shipment that were left out before this one
    because too much waited.
    """

    skipped: Annotated[int, Field(description="How many.")]
    from_sequence: int
    to_sequence: int


class ObservedData(TypedDict):
    """Rule by which it was observed."""

    cause: Annotated[
        str,
        Field(description="It is observed again only if this changes: a scan's id, a day, a time."),
    ]
    hours: Annotated[int, Field(description="The hours of the rule.")]


class NotifiedShipment(ShipmentSummary, Signer):
    """A shipment's state right after the change."""


class ChangeData(StatusChange):
    """A change of one shipment.

    With a full payload also the event and the state; fields may be added.
    """

    carrier_id: str
    tracking_number: Annotated[str, Field(description="As the carrier prints it.")]
    occurred_at: Annotated[
        TimeText,
        Field(description="The carrier's time, in its own offset."),
    ]
    sequence: Annotated[
        int, Field(description="Increases per shipment within an `epoch`, possibly by more than 1.")
    ]
    observed: NotRequired[
        Annotated[
            ObservedData,
            Field(
                description=(
                    "A missed deadline: `occurred_at` is the deadline, `sequence` that of the"
                    " shipment's last event, `from` and `to` its status. The payload is always"
                    " thin."
                )
            ),
        ]
    ]
    epoch: NotRequired[
        Annotated[
            int,
            Field(
                description=(
                    "Epoch of the log; absent: 1. After a restore, the next epoch restarts"
                    " sequences."
                )
            ),
        ]
    ]
    gap: NotRequired[
        Annotated[GapData, Field(description="This notification replaces earlier ones.")]
    ]
    event: NotRequired[
        Annotated[StatedEvent, Field(description="Full payload: the carrier's event.")]
    ]
    shipment: NotRequired[
        Annotated[NotifiedShipment, Field(description="Full payload: the state after the event.")]
    ]
    erased: NotRequired[
        Annotated[bool, Field(description="Full payload: the personal fields were erased.")]
    ]
    test: NotRequired[Annotated[bool, Field(description="True: an example sent by `/test`.")]]


class OperatorData(TypedDict):
    """An incident of the service itself: it begins, or it is over."""

    incident_id: Annotated[UUID, Field(description="The same when it is over.")]
    state: Literal["open", "recovered"]
    target: Annotated[str, Field(description="As in operator actions: `carrier ups`.")]
    since: TimeText
    text: Annotated[str, Field(description="For people.")]
    page: Annotated[str, Field(description="`statesvc runbook PAGE` prints what to do.")]
    test: NotRequired[Annotated[bool, Field(description="True: an example sent by `/test`.")]]


class ConnectionTestData(TypedDict):
    """Data of a test of the connection alone."""

    subscription_id: str
