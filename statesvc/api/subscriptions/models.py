"""Parameters and answers of the calls about subscriptions."""

from collections.abc import Sequence
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, Field, WithJsonSchema
from typing_extensions import TypedDict

from statesvc.api import kit
from statesvc.api.subscriptions.members import GraceHours
from statesvc.api.subscriptions.receiver_fields import OlderSignatureShown
from statesvc.delivery.event_catalogue import BY_TYPE, CONNECTION_TEST
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.shipments.models import text_of
from statesvc.subscriptions.recorded_attempts import LimiterSummary
from statesvc.subscriptions.subscription_secrets import KeyType
from statesvc.subscriptions.subscription_store import Condition


class SubscriptionListParameters(kit.PageParameters):
    """A page of subscriptions, the oldest first."""

    state: Annotated[
        Condition | None,
        Field(
            description=(
                "Only those in this state; `failing`: not disabled, and nothing was delivered"
                " lately."
            )
        ),
    ] = None


class SubscriptionParameters(kit.ClosedModel):
    """A subscription."""

    subscription_id: Annotated[UUID, kit.FieldFace(help="its id")]


class RotationParameters(SubscriptionParameters):
    """A subscription, and how long its former secret stays good."""

    grace_hours: GraceHours = 24
    key_type: Annotated[
        KeyType | None, Field(description="Of the new one; left out: as before.")
    ] = None


def _of_catalogue(kind: str) -> str:
    if kind not in BY_TYPE:
        raise ValueError(f"no such type; there are {', '.join(BY_TYPE)}")
    return kind


class TestRequest(kit.ClosedModel):
    """Notification to send as a test."""

    type: Annotated[
        str,
        AfterValidator(_of_catalogue),
        WithJsonSchema({"type": "string", "enum": [*BY_TYPE]}),
        Field(description="Its example is sent, with the payload that the subscription has."),
    ] = CONNECTION_TEST


class AttemptsParameters(kit.PageParameters):
    """A page of a subscription's attempts, the newest first."""

    subscription_id: UUID
    responses: Annotated[
        bool,
        Field(
            description=(
                "With what the receiver answered. It may repeat personal data: takes the scope"
                " `pii`, and is recorded."
            )
        ),
    ] = False


class FailingShown(TypedDict):
    """A receiver that only fails.

    After 24 h the operator is warned; after 5 days and 20 failures the subscription is disabled.
    """

    since: Annotated[
        AwareDatetime, Field(description="Of the first failure after the last delivery.")
    ]
    failures: int
    last_outcome: Annotated[str | None, text_of(AttemptOutcome)]
    last_status_code: int | None


class WatchedNumber(TypedDict):
    """All shipments of a carrier that bear a number."""

    carrier_id: str
    tracking_number: str


AgeLimits = Annotated[
    dict[str, float | None],
    Field(description="As `give_up_after_seconds` was set; all types are there."),
]


class SubscriptionShown(TypedDict):
    """A subscription. Its secret is shown when it is made, never again."""

    id: UUID
    owner: Annotated[
        str,
        Field(
            description=(
                "Of the key that made it. Keys of other owners do not see it, but for scope `ops`."
            )
        ),
    ]
    name: str | None
    description: str | None
    url: str
    has_login: Annotated[
        bool, Field(description="Its URL held a login; what is shown leaves it out.")
    ]
    carriers: list[str] | None
    statuses: list[str] | None
    types: list[str] | None
    shipments: list[WatchedNumber] | None
    parcels: Annotated[str, text_of(Literal["all", "once"])]
    payload: Annotated[str, text_of(Literal["thin", "full"])]
    pii: bool
    key_type: KeyType
    signature: OlderSignatureShown | None
    headers: Annotated[
        list[str],
        Field(description="Names of the headers of your own; their values are shown to no one."),
    ]
    public_keys: Annotated[
        list[str],
        Field(
            description=(
                "`whpk_` and base64, of what signs with Ed25519 now: one, or two during a rotation;"
                " none with hmac."
            )
        ),
    ]
    rate_per_second: float | None
    coalesce: bool
    give_up_after_seconds: AgeLimits
    max_age_seconds: float | None
    state: Annotated[
        Literal["active", "paused", "disabled"],
        Field(
            description=(
                "paused: notifications collect; disabled: the receiver answered 410 Gone, or took"
                " nothing for days, and nothing collects. `resume` ends both."
            )
        ),
    ]
    created_at: AwareDatetime
    created_by: str
    paused_at: AwareDatetime | None
    disabled_at: AwareDatetime | None
    disabled_why: str | None
    missed_since: Annotated[
        AwareDatetime | None,
        Field(
            description=(
                "It was disabled: after `resume`, `replay` with `since` set to this sends what was"
                " missed. null: nothing was."
            )
        ),
    ]
    failing: Annotated[
        FailingShown | None,
        Field(description="Nothing was delivered lately. null: the last attempt was delivered."),
    ]


class SubscriptionDetail(SubscriptionShown):
    """A subscription with its present health."""

    limiter: LimiterSummary


class SubscriptionMade(SubscriptionShown):
    """A subscription with its new secret."""

    secret: Annotated[
        str | None,
        Field(
            description=(
                "`whsec_` and base64, as Standard Webhooks libraries take it. Shown once. null: see"
                " `public_keys`."
            )
        ),
    ]


class AttemptShown(TypedDict):
    """An attempt at a notification, or a test."""

    webhook_id: str
    type: str
    test: Annotated[
        bool, Field(description="`POST .../test` sent it: nothing happened to any shipment.")
    ]
    carrier_id: Annotated[
        str | None,
        Field(description="null: a `subscription.test`; of other tests: what their example says."),
    ]
    tracking_number: str | None
    sequence: int | None
    number: Annotated[int, Field(description="1 for the first try.")]
    outcome: Annotated[str, text_of(AttemptOutcome)]
    status_code: int | None
    duration_ms: int
    started_at: AwareDatetime
    recorded_at: AwareDatetime
    response: Annotated[
        str | None,
        Field(
            description=(
                "The first 20 kB of the answer. null: not asked for, none came, erased with the"
                " shipment, or a test's."
            )
        ),
    ]
    response_headers: Annotated[
        Sequence[tuple[str, str]] | None, Field(description="Without cookies and credentials.")
    ]


class TrialShown(TypedDict):
    """Outcome of a test."""

    webhook_id: str
    type: str
    outcome: AttemptOutcome
    status_code: int | None
    duration_ms: int
    detail: Annotated[
        str | None, Field(description="Of a broker: where the message is, or why it is not there.")
    ]
