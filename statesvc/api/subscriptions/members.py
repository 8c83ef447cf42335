"""Members of a subscription, as a request states them."""

import re
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from events.carriers import CARRIERS
from events.vocabulary import Status
from projections.notification_type import NotificationType
from statesvc.api import kit
from statesvc.api.parameters import known_carrier
from statesvc.api.subscriptions.receiver_fields import Headers, SignatureAsked
from statesvc.delivery.target_kind import target_kinds
from statesvc.subscriptions.subscription_secrets import ROTATION_GRACE_HOURS_MAX, KeyType, Secret
from statesvc.subscriptions.url import URL_CHARS_MAX

FILTER_MAX = 200
NO_CONTROLS: Final = r"^[^\x00-\x1f\x7f]*$"
RATE_MAX = 10_000
GIVE_UP_SECONDS_MAX = 30 * 24 * 3600
MAX_AGE_SECONDS_MAX = 10 * 365 * 24 * 3600


CarrierId = Annotated[
    str,
    Field(
        max_length=64,
        json_schema_extra={"pattern": f"^({'|'.join(CARRIERS)})$"},
        description="As `statesvc carriers` lists them.",
    ),
    AfterValidator(known_carrier),
]
GiveUpSeconds = Annotated[float | None, Field(gt=0, le=GIVE_UP_SECONDS_MAX, allow_inf_nan=False)]
Url = Annotated[
    str,
    # a command's `--url` is the service's own address
    kit.FieldFace(flag="--receiver", metavar="URL"),
    Field(
        max_length=URL_CHARS_MAX,
        json_schema_extra={
            "pattern": rf"^({'|'.join(['https', 'http', *map(re.escape, target_kinds())])})://\S+$"
        },
        description=(
            "https, or a message broker that gets CloudEvents: `nats+tls://host/subject?stream=..`,"
            " `amqps://host/vhost/exchange?routing_key=..`, `kafka+tls://host/topic`, or one that"
            " gets tasks of Celery's: `celery+amqps://host/vhost/queue?task=..`,"
            " `celery+rediss://host/database/queue?task=..`. What is not encrypted (http, nats,"
            " amqp, kafka, redis) only for hosts in the networks of STATESVC_SUBSCRIBER_ALLOW. A"
            " broker's URL may hold `user:password@`, which is stored sealed and shown to no one; a"
            " webhook's may not."
        ),
    ),
]
URL_RULE: Final = (
    "The `url` is one that this installation sends to: its address may be connected to, what is not"
    " encrypted lies in STATESVC_SUBSCRIBER_ALLOW, and a broker's names what the broker needs."
)
Carriers = Annotated[
    list[CarrierId] | None,
    kit.FieldFace(flag="--carrier"),
    Field(min_length=1, max_length=FILTER_MAX, description="Only of these carriers; null: of all."),
]
Statuses = Annotated[
    list[Status] | None,
    kit.FieldFace(flag="--status"),
    Field(min_length=1, max_length=FILTER_MAX, description="Only changes to these; null: to any."),
]
Types = Annotated[
    list[NotificationType] | None,
    kit.FieldFace(flag="--type"),
    Field(
        min_length=1,
        max_length=FILTER_MAX,
        description=(
            "Only these; null: all of shipments. `operator.*` take a key with the scope"
            " `ops`, and no other filter applies to them."
        ),
    ),
]


class WatchedShipment(kit.ClosedModel):
    """All shipments of a carrier that bear a number."""

    carrier_id: CarrierId
    tracking_number: Annotated[
        str,
        Field(
            min_length=1,
            max_length=100,
            pattern=r"^[^\x00]*$",
            description="In any spelling: case, blanks and hyphens do not matter.",
        ),
    ]


GiveUpAfter = Annotated[
    dict[NotificationType, GiveUpSeconds],
    Field(
        description=(
            "By type, how many seconds a notification may wait; its next attempt makes a dead"
            " letter of an older one. A type that is left out, or null: never for its age."
        )
    ),
]
MaxAge = Annotated[
    float | None,
    Field(
        gt=0,
        le=MAX_AGE_SECONDS_MAX,
        allow_inf_nan=False,
        description=(
            "What had happened longer ago than this when it was recorded, as in an imported"
            " history, is not sent; it is listed with the outcome `cancelled`. Null: everything is"
            " sent."
        ),
    ),
]
Shipments = Annotated[
    list[WatchedShipment] | None,
    Field(
        min_length=1,
        max_length=FILTER_MAX,
        description="Only these shipments; null: all of the carriers.",
    ),
]
Parcels = Annotated[
    Literal["all", "once"],
    Field(
        description=(
            "Of a parcel that several sources push, a carrier and an aggregator: `all` that they"
            " say, or each status `once`, from whichever of those that match the filters says it"
            " first."
        )
    ),
]
Payload = Annotated[
    Literal["thin", "full"],
    Field(
        description=(
            "thin: the change alone; full: also the event and the shipment's state right after it,"
            " as the API shows them. Takes a key with scope `read`."
        )
    ),
]
Pii = Annotated[
    bool,
    Field(
        description=(
            "A full payload holds personal fields too. Takes a key with scope `pii`, and is"
            " recorded in the log."
        )
    ),
]
KeyTypeAsked = Annotated[
    KeyType,
    Field(
        description=(
            "hmac: a shared secret signs (`v1`); ed25519: a key signs whose public half is shown at"
            " any time (`v1a`)."
        )
    ),
]
RatePerSecond = Annotated[
    float | None,
    Field(
        gt=0,
        le=RATE_MAX,
        allow_inf_nan=False,
        description=(
            "At most this many notifications a second, by all notifiers together; null: as many as"
            " the receiver takes."
        ),
    ),
]
Label = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=100,
        pattern=NO_CONTROLS,
        description="What people call it: on pages, in lists.",
    ),
]
Description = Annotated[
    str | None, Field(max_length=1_000, pattern=r"^[^\x00]*$", description="For people.")
]
Coalesce = Annotated[
    bool,
    Field(
        description=(
            "When too much waits, send the latest state of each shipment with a `data.gap` that"
            " says what it stands for; false: send each one, however late."
        )
    ),
]


_PERSONAL_IS_FULL: JsonDict = {
    "not": {
        "required": ["pii"],
        "properties": {"pii": {"const": True}, "payload": {"const": "thin"}},
    }
}


class SubscriptionMembers(kit.ClosedModel):
    """Members of a subscription that may be stated at first and changed later."""

    url: Url = ""
    name: Label = None
    description: Description = None
    carriers: Carriers = None
    statuses: Statuses = None
    types: Types = None
    shipments: Shipments = None
    parcels: Parcels = "all"
    payload: Payload = "thin"
    pii: Pii = False
    signature: SignatureAsked = None
    headers: Headers = Field(default_factory=dict, repr=False)
    rate_per_second: RatePerSecond = None
    coalesce: Coalesce = True
    give_up_after_seconds: GiveUpAfter = Field(default_factory=dict)
    max_age_seconds: MaxAge = None


class SubscriptionInput(SubscriptionMembers):
    """Target of the notifications, and which of them to send."""

    model_config = ConfigDict(json_schema_extra=_PERSONAL_IS_FULL)

    url: Url
    key_type: KeyTypeAsked = "hmac"

    @model_validator(mode="after")
    def _has_room_for_personal_fields(self) -> Self:
        if self.pii and self.payload == "thin":
            raise ValueError("`pii` is for the payload `full`: a thin one holds nothing personal")
        return self

    @model_validator(mode="after")
    def _has_a_secret_to_sign_with(self) -> Self:
        if self.signature is not None and self.key_type != "hmac":
            raise ValueError("`signature` takes a secret that is shared: `key_type` hmac")
        return self


def _secret(text: str) -> str:
    Secret.chosen(text)
    return text


SecretText = Annotated[
    str,
    Field(
        max_length=100,
        json_schema_extra={"pattern": r"^whs(ec_[A-Za-z0-9+/]{32,86}|k_[A-Za-z0-9+/]{43})={0,2}$"},
        description=(
            "`whsec_` and 24 to 64 random bytes in base64; or `whsk_` and the 32 bytes of an"
            " Ed25519 seed. It is stored sealed and shown to no one."
        ),
    ),
    AfterValidator(_secret),
]


class ChosenSubscription(SubscriptionInput):
    """A subscription whose id and secret the caller chose."""

    secret: SecretText

    @model_validator(mode="after")
    def _signs_as_wished(self) -> Self:
        if Secret.chosen(self.secret).kind != self.key_type:
            raise ValueError(
                "`key_type` and `secret` are of different kinds: `whsec_` is for hmac, `whsk_` for"
                " ed25519"
            )
        return self


GraceHours = Annotated[
    float,
    Field(
        ge=0,
        le=ROTATION_GRACE_HOURS_MAX,
        allow_inf_nan=False,
        description="For this time both secrets sign. 0: the former ends now.",
    ),
]


class ChosenSecret(kit.ClosedModel):
    """A secret that the caller chose."""

    secret: SecretText
    grace_hours: GraceHours = 24


class SubscriptionChange(SubscriptionMembers, kit.PartialChange):
    """Members of a subscription to change; those that are left out stay."""
