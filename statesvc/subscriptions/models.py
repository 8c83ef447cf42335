"""What the calls about subscriptions take and answer."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from events.carriers import CARRIERS
from events.vocabulary import Status
from statesvc.http.paging import PageParameters
from statesvc.notifier.limiter.breaker import BreakerState
from statesvc.notifier.outcome import Outcome
from statesvc.subscriptions.secret import ROTATION_GRACE_HOURS_MAX
from statesvc.subscriptions.url import URL_CHARS_MAX

FILTER_MAX = 200
RATE_MAX = 10_000


def _known(carrier_id: str) -> str:
    if carrier_id not in CARRIERS:
        raise ValueError("no such carrier_id; `statesvc carriers` lists them")
    return carrier_id


NotificationType = Literal["shipment.status_changed", "shipment.updated"]
CarrierId = Annotated[str, Field(max_length=64), AfterValidator(_known)]
Url = Annotated[
    str,
    Field(
        max_length=URL_CHARS_MAX,
        description="https; plain http only for hosts in the networks of STATESVC_SUBSCRIBER_ALLOW. No user name or password.",
    ),
]
Carriers = Annotated[
    list[CarrierId] | None, Field(min_length=1, max_length=FILTER_MAX, description="Only of these carriers; null: of all.")
]
Statuses = Annotated[list[Status] | None, Field(min_length=1, max_length=FILTER_MAX, description="Only changes to these; null: to any.")]
Types = Annotated[list[NotificationType] | None, Field(min_length=1, max_length=FILTER_MAX, description="Only these; null: all.")]


RatePerSecond = Annotated[
    float | None,
    Field(
        gt=0,
        le=RATE_MAX,
        allow_inf_nan=False,
        description="At most so many notifications a second, by all notifiers together; null: as many as the receiver bears.",
    ),
]
Coalesce = Annotated[
    bool,
    Field(
        description="When too much waits, send the latest state of each shipment with a `data.gap` that says what it stands for;"
        " false: send each one, however late."
    ),
]


class SubscriptionWish(BaseModel):
    """Where to tell, and what."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Url
    carriers: Carriers = None
    statuses: Statuses = None
    types: Types = None
    payload: Annotated[Literal["thin"], Field(description="What a notification holds: the change alone.")] = "thin"
    rate_per_second: RatePerSecond = None
    coalesce: Coalesce = True


class SubscriptionChange(BaseModel):
    """What to change; members that are left out stay."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Url = ""
    carriers: Carriers = None
    statuses: Statuses = None
    types: Types = None
    payload: Literal["thin"] = "thin"
    rate_per_second: RatePerSecond = None
    coalesce: Coalesce = True


class SubscriptionParameters(BaseModel):
    """One subscription."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    subscription_id: UUID


class RotationParameters(SubscriptionParameters):
    """One subscription, and how long its former secret stays good."""

    grace_hours: Annotated[
        float,
        Field(ge=0, le=ROTATION_GRACE_HOURS_MAX, allow_inf_nan=False, description="So long both secrets sign. 0: the former ends now."),
    ] = 24


class AttemptsParameters(PageParameters):
    """A page of what was tried for one subscription, the newest first."""

    subscription_id: UUID


class FailingShown(BaseModel):
    """A receiver that only fails. After 24 h the operator is warned; after 5 days and 20 failures it is told no more."""

    model_config = ConfigDict(extra="forbid")

    since: Annotated[AwareDatetime, Field(description="Of the first failure after the last delivery.")]
    failures: int
    last_outcome: Outcome
    last_status_code: int | None


class SubscriptionShown(BaseModel):
    """A subscription. Its secret is shown when it is made, never again."""

    model_config = ConfigDict(extra="forbid")

    id: UUID
    url: str
    carriers: list[str] | None
    statuses: list[str] | None
    types: list[str] | None
    payload: Literal["thin", "full"]
    rate_per_second: float | None
    coalesce: bool
    state: Annotated[
        Literal["active", "paused", "disabled"],
        Field(
            description="paused: notifications collect; disabled: the receiver answered 410 Gone, or took nothing for days, and nothing"
            " collects. `resume` ends both."
        ),
    ]
    created_at: AwareDatetime
    created_by: str
    paused_at: AwareDatetime | None
    disabled_at: AwareDatetime | None
    disabled_why: str | None
    missed_since: Annotated[
        AwareDatetime | None,
        Field(description="It was disabled: after `resume`, `replay` with `since` set to this tells what was missed. null: nothing was."),
    ]
    failing: Annotated[FailingShown | None, Field(description="Nothing was delivered lately. null: the last attempt was delivered.")]


class LimiterShown(BaseModel):
    """How fast its receiver may be told, as all notifiers together learned it."""

    model_config = ConfigDict(extra="forbid")

    limit: Annotated[int, Field(description="Requests at a time; 0: nothing was sent lately, the next ones begin carefully.")]
    in_flight: int
    mean_latency_seconds: Annotated[float | None, Field(description="Of answers 2xx while few requests are under way.")]
    breaker: Annotated[
        BreakerState,
        Field(description="open: most attempts failed, nothing but a probe from time to time; half_open: the probe is under way."),
    ]
    next_allowed_at: Annotated[AwareDatetime | None, Field(description="Nothing is sent before: it asked to wait, or the breaker is open.")]
    notifiers: Annotated[int, Field(description="How many notifier processes sent to it lately.")]


class SubscriptionDetail(SubscriptionShown):
    """A subscription, and how it fares."""

    limiter: LimiterShown


class SubscriptionMade(SubscriptionShown):
    """A subscription that was just made, or whose secret was."""

    secret: Annotated[str, Field(description="`whsec_` and base64, as Standard Webhooks libraries take it. Shown once.")]


class AttemptShown(BaseModel):
    """One try at one notification."""

    model_config = ConfigDict(extra="forbid")

    webhook_id: str
    type: NotificationType
    carrier_id: str
    tracking_number: str
    sequence: int
    number: Annotated[int, Field(description="1 for the first try.")]
    outcome: Outcome
    status_code: int | None
    duration_ms: int
    started_at: AwareDatetime
    recorded_at: AwareDatetime


class TrialShown(BaseModel):
    """What came of a test."""

    model_config = ConfigDict(extra="forbid")

    webhook_id: str
    outcome: Outcome
    status_code: int | None
    duration_ms: int
