"""`/v1/subscriptions/{id}/notifications`: list, show and resend a subscriber's notifications."""

from collections.abc import Sequence
from typing import Annotated, Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from events.identity.ids import awaited_id
from events.identity.recipes import number_of
from statesvc.api import kit
from statesvc.api.subscriptions.models import SubscriptionParameters
from statesvc.api.subscriptions.ownership import absent, require_visible
from statesvc.database.wakeups.wakeup import OUTBOX
from statesvc.delivery.attempt_part import Response
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.shipments.models import text_of
from statesvc.shipments.shipment_list import numbers_in_any_spelling
from statesvc.subscriptions.replay import UnderWayError, read_status, resend
from statesvc.subscriptions.sent_notifications import (
    BodyState,
    NotificationFilter,
    NotificationOutcome,
    NotificationPosition,
    SentNotification,
    SentTry,
    find_notification,
    read_notification,
    read_page,
    shipments_of_numbers,
)

_ALL: Final = "/v1/subscriptions/{subscription_id}/notifications"
_ONE: Final = _ALL + "/{webhook_id}"


class NotificationListParameters(kit.PageParameters, SubscriptionParameters):
    """A page of a subscription's notifications, the newest first."""

    outcome: Annotated[
        NotificationOutcome | None,
        Field(
            description=(
                "Only those that ended so; `waiting`: not yet; `coalesced`: a later one of the"
                " shipment stood for it."
            )
        ),
    ] = None
    since: Annotated[
        kit.Instant | None, Field(description="Only of changes that were recorded then or later.")
    ] = None
    carrier_id: Annotated[
        kit.KnownCarrier | None, Field(description="Only of this carrier's shipments.")
    ] = None
    tracking_number: Annotated[
        kit.Name | None, Field(description="Only of the shipments that bear it, in any spelling.")
    ] = None


class NotificationParameters(SubscriptionParameters):
    """A notification of a subscription."""

    webhook_id: Annotated[
        str,
        Field(
            min_length=1,
            max_length=100,
            pattern=r"^[!-~]+$",
            description="Its header `webhook-id`.",
        ),
    ]


class NotificationBodyParameters(NotificationParameters):
    """A notification, with or without personal fields."""

    include: kit.Include = None


class NotificationTry(TypedDict):
    """An attempt at it."""

    number: Annotated[int, Field(description="1 for the first try; those of a replay count on.")]
    outcome: Annotated[str, text_of(AttemptOutcome)]
    status_code: int | None
    duration_ms: int
    started_at: AwareDatetime


class _NotificationMembers(TypedDict):
    webhook_id: str
    type: str
    carrier_id: str
    tracking_number: str
    sequence: Annotated[int, Field(description="As its body says it.")]
    outcome: Annotated[str, text_of(NotificationOutcome)]
    created_at: Annotated[AwareDatetime, Field(description="When what it says was recorded.")]
    next_attempt_at: Annotated[
        AwareDatetime | None, Field(description="Of what waits: not before then.")
    ]


class NotificationShown(_NotificationMembers):
    """A notification, with its tries."""

    attempts: list[NotificationTry]


class AnsweredTry(NotificationTry):
    """An attempt with the receiver's answer."""

    response: Annotated[
        str | None,
        Field(
            description=(
                "The first 20 kB, with `include=personal`. null: none came, none stored, or erased."
            )
        ),
    ]
    response_headers: Annotated[
        Sequence[tuple[str, str]] | None, Field(description="Without cookies and credentials.")
    ]


class NotificationDetail(_NotificationMembers):
    """A notification, its tries, and its body."""

    attempts: list[AnsweredTry]
    body: Annotated[
        str | None,
        Field(
            description=(
                "As the last try sent it, byte for byte; its commitment in the log was compared."
            )
        ),
    ]
    body_state: Annotated[
        str,
        text_of(BodyState),
        Field(
            description=(
                "not_sent: there was no try; withheld: it holds personal fields, ask with"
                " `include=personal`; erased: with its shipment; unavailable: what would open it is"
                " gone."
            )
        ),
    ]


@kit.operation(
    f"GET {_ALL}",
    scope="subscriptions",
    tag="subscriptions",
    problems=(kit.Code.NOT_FOUND, kit.Code.INVALID_CURSOR, kit.Code.LOG_UNAVAILABLE),
    commands=(
        kit.Command(
            name="subscriptions notifications",
            view=kit.Table(
                "created_at",
                "outcome",
                "type",
                "carrier_id",
                "tracking_number",
                "sequence",
                kit.Column("webhook_id", "Webhook id"),
                empty="It had no notification.",
            ),
        ),
    ),
)
async def list_notifications(
    context: kit.Context, call: kit.Call[NotificationListParameters, None]
) -> kit.Page[NotificationShown]:
    """List a subscription's notifications.

    The newest first, with their attempts, as far back as the log's months are in the database; of a
    named shipment, all. A page with a `next_cursor` may hold fewer than `limit`.
    """
    asked = call.parameters
    bound_to = {
        "list": "notifications",
        **asked.model_dump(mode="json", exclude={"cursor", "limit"}),
    }
    before = (
        None
        if asked.cursor is None
        else kit.position_of(asked.cursor, NotificationPosition, bound_to)
    )
    async with context.pool.connection() as connection:
        await require_visible(connection, call, asked.subscription_id)
        wanted = NotificationFilter(
            subscription_id=asked.subscription_id,
            outcome=asked.outcome,
            since=asked.since,
            carrier_id=asked.carrier_id,
            shipment_ids=await _shipments(context, connection, asked),
        )
        found, goes_on = await read_page(connection, wanted, before=before, limit=asked.limit)
    return kit.Page(
        [_shown(one) for one in found],
        None if goes_on is None else kit.encode_position(goes_on, bound_to),
    )


@kit.operation(
    f"GET {_ONE}",
    scope="subscriptions",
    tag="subscriptions",
    request_headers=kit.WHY_TAKEN,
    problems=(kit.Code.NOT_FOUND,),
    commands=(kit.Command(name="subscriptions notification"),),
)
async def get_notification(
    context: kit.Context, call: kit.Call[NotificationBodyParameters, None]
) -> NotificationDetail:
    """Show a notification.

    With its body as it was sent. Personal fields and the receiver's answer come with
    `include=personal` alone.
    """
    asked = call.parameters
    personal = kit.reads_personal(call, asked.include)
    async with context.pool.connection() as connection:
        await require_visible(connection, call, asked.subscription_id)
        sent = await _found(context, connection, asked)
        if personal:
            # before it is opened: a reading that fails after this is on record, the reverse never
            await context.readings.record(
                connection, call, name="notification", target=f"shipment {sent.place.shipment_id}"
            )
    keyring = await context.keyring()
    body, state = sent.sent_body(keyring, personal=personal)
    attempts = [_answered(one, one.response(keyring) if personal else None) for one in sent.tries]
    return {**_shown(sent), "attempts": attempts, "body": body, "body_state": state}


@kit.operation(
    f"POST {_ONE}/resend",
    scope="subscriptions",
    tag="subscriptions",
    request_headers=kit.WHY_TAKEN,
    problems=(kit.Code.NOT_FOUND, kit.Code.CONFLICT),
    view=kit.Sentences("Notification {webhook_id} is sent again."),
    commands=(kit.Command(name="subscriptions resend"),),
    forms=(
        kit.Form(
            path="/console/subscriptions/{subscription_id}/notifications/{webhook_id}/resend",
            title="Send {webhook_id} again",
            button="Send again",
            would=kit.Sentences(
                "It is sent again under its webhook-id, so a receiver that dedupes on it drops what"
                " it has."
            ),
            then="/console/subscriptions/{subscription_id}",
        ),
    ),
)
async def resend_notification(
    context: kit.Context, call: kit.Call[NotificationParameters, None]
) -> NotificationShown:
    """Send a notification again.

    Under its `webhook-id`, by the same limiter and with the same retries as any other; its
    attempts count on. A waiting notification is due at once; 409 during an attempt. Recorded as
    an operator action.
    """
    asked = call.parameters
    async with context.pool.connection() as connection:
        await require_visible(connection, call, asked.subscription_id)
        current = await read_status(connection, asked.subscription_id)
        if current is None:
            raise absent(asked.subscription_id)
        if current.disabled:
            raise kit.Problem(kit.Code.CONFLICT, "the subscription is disabled: resume it first")
        sent = await _found(context, connection, asked)
        try:
            await resend(
                connection, asked.subscription_id, sent, actor=call.caller.actor, **call.why
            )
        except UnderWayError as error:
            raise kit.Problem(
                kit.Code.CONFLICT,
                "it is being sent at this moment: ask again when that try has ended",
            ) from error
        put = await _found(context, connection, asked)
    context.waker.wake(OUTBOX)
    return _shown(put)


async def _shipments(
    context: kit.Context, connection: AsyncConnection[Any], asked: NotificationListParameters
) -> list[UUID] | None:
    if asked.tracking_number is None:
        return None
    number, carrier_id = asked.tracking_number, asked.carrier_id
    numbers = (
        numbers_in_any_spelling(number) if carrier_id is None else [number_of(carrier_id, number)]
    )
    shipments = await shipments_of_numbers(connection, numbers, carrier_id)
    # a number that was never heard of has notifications under an id of its own
    shipments += [
        awaited_id(each, number_of(each, number))
        for each in ([carrier_id] if carrier_id else context.carriers())
    ]
    # notifications leave the tables with their month, and come back with the shipment
    await context.log_archive().restore_shipments(connection, shipments)
    return shipments


async def _found(
    context: kit.Context, connection: AsyncConnection[Any], asked: NotificationParameters
) -> SentNotification:
    place = await find_notification(connection, asked.subscription_id, asked.webhook_id)
    if place is not None:
        await context.log_archive().restore_shipments(connection, [place.shipment_id])
    found = (
        None if place is None else await read_notification(connection, asked.subscription_id, place)
    )
    if found is None:
        raise kit.Problem(
            kit.Code.NOT_FOUND, f"the subscription has no notification {asked.webhook_id}"
        )
    return found


def _shown(one: SentNotification) -> NotificationShown:
    told = one.notification
    return {
        "webhook_id": told.webhook_id,
        "type": told.type,
        "carrier_id": told.carrier_id,
        "tracking_number": told.tracking_number,
        # that of an observation is negative inside: the body has the version
        "sequence": told.sequence if told.observed is None else told.observed["version"],
        "outcome": one.outcome,
        "created_at": told.created_at,
        "next_attempt_at": one.available_at,
        "attempts": [_try(each) for each in one.tries],
    }


def _try(one: SentTry) -> NotificationTry:
    return {
        "number": one.number,
        "outcome": one.outcome,
        "status_code": one.status_code,
        "duration_ms": one.duration_ms,
        "started_at": one.started_at,
    }


def _answered(one: SentTry, response: Response | None) -> AnsweredTry:
    text, headers = (None, None) if response is None else (response.text, response.headers)
    return {**_try(one), "response": text, "response_headers": headers}


OPERATIONS: Final = (list_notifications, get_notification, resend_notification)
