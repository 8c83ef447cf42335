"""`/v1/subscriptions/{subscription_id}/...`: pause, resume, test, a new secret, attempts."""

from datetime import timedelta
from typing import Final

from statesvc.api import kit
from statesvc.api.subscriptions import subscription_words as words
from statesvc.api.subscriptions.models import (
    AttemptShown,
    AttemptsParameters,
    RotationParameters,
    SubscriptionMade,
    SubscriptionParameters,
    SubscriptionShown,
    TestRequest,
    TrialShown,
)
from statesvc.api.subscriptions.ownership import (
    absent,
    grants_checked,
    require_scopes,
    require_visible,
)
from statesvc.api.subscriptions.shown import attempt_shown, read_shown
from statesvc.api.subscriptions.subscription_operations import (
    LIST,
    ONE,
    SCREEN,
    secret_once,
    switch,
)
from statesvc.database.wakeups.wakeup import OUTBOX
from statesvc.delivery.outcome import TOTAL_SECONDS
from statesvc.http.keys.key_store import Scope
from statesvc.subscriptions import subscription_store as store
from statesvc.subscriptions.connection_test import record_test, send_test
from statesvc.subscriptions.recorded_attempts import AttemptPosition, read_attempts
from statesvc.subscriptions.signing_means import read_signing_means

_SHOWN_ONCE: Final = (kit.Details("secret", "public_keys"), kit.Sentences(words.shown_once))


@kit.operation(
    f"POST {ONE}/pause",
    scope="subscriptions",
    request_headers=kit.WHY_TAKEN,
    problems=(kit.Code.NOT_FOUND,),
    view=kit.Sentences("Paused: notifications collect, and are sent once it is resumed."),
    commands=(kit.Command(name="subscriptions pause"),),
    forms=(
        kit.Form(
            path=SCREEN + "/pause",
            title="Pause a subscription",
            button="Pause",
            preview="get_subscription",
            would=kit.Sentences(words.would_pause),
            then=SCREEN,
            section=LIST,
        ),
    ),
)
async def pause_subscription(
    context: kit.Context, call: kit.Call[SubscriptionParameters, None]
) -> SubscriptionShown:
    """Pause a subscription."""
    subscription_id = await switch(context, call, "pause")
    async with context.pool.connection() as connection:
        return await read_shown(connection, context, subscription_id)


@kit.operation(
    f"POST {ONE}/resume",
    scope="subscriptions",
    request_headers=kit.WHY_TAKEN,
    problems=(kit.Code.NOT_FOUND,),
    view=kit.Sentences(words.resumed),
    commands=(kit.Command(name="subscriptions resume"),),
    forms=(
        kit.Form(
            path=SCREEN + "/resume",
            title="Resume a subscription",
            button="Resume",
            preview="get_subscription",
            would=kit.Sentences(words.would_resume),
            then=SCREEN,
            section=LIST,
        ),
    ),
)
async def resume_subscription(
    context: kit.Context, call: kit.Call[SubscriptionParameters, None]
) -> SubscriptionShown:
    """Resume a subscription."""
    subscription_id = await switch(context, call, "resume")
    # what collected in the pause is due now, and nothing else would wake a notifier
    context.waker.wake(OUTBOX)
    async with context.pool.connection() as connection:
        return await read_shown(connection, context, subscription_id)


@kit.operation(
    f"POST {ONE}/rotate-secret",
    scope="subscriptions",
    request_headers=kit.WHY_TAKEN,
    problems=(kit.Code.NOT_FOUND, kit.Code.CONFLICT),
    view=kit.Sentences(words.secret, words.former_secret),
    commands=(kit.Command(name="subscriptions rotate-secret", fields=("grace_hours",)),),
    forms=(
        kit.Form(
            path=SCREEN + "/rotate-secret",
            title="Rotate the secret of a subscription",
            button="New secret",
            preview="get_subscription",
            fields=("grace_hours",),
            would=kit.Sentences(
                "Notifications to {url} are signed with a new secret from now on. The next page"
                " shows it.",
                words.former_secret,
            ),
            view=(*_SHOWN_ONCE, kit.Sentences(words.former_secret)),
            then=SCREEN,
            section=LIST,
            is_drastic=True,
        ),
    ),
)
async def rotate_subscription_secret(
    context: kit.Context, call: kit.Call[RotationParameters, None]
) -> SubscriptionMade:
    """Rotate a subscription's secret."""
    asked = call.parameters
    grace = timedelta(hours=asked.grace_hours)
    async with context.pool.connection() as connection:
        await require_visible(connection, call, asked.subscription_id)
        with grants_checked():
            secret = await store.rotate(
                connection,
                await context.keyring(),
                asked.subscription_id,
                grace=grace,
                actor=call.caller.actor,
                key_type=asked.key_type,
                chosen=None,
                **call.why,
            )
        if secret is None:
            raise absent(asked.subscription_id)
        shown = await read_shown(connection, context, asked.subscription_id)
    return {**shown, "secret": secret_once(secret)}


@kit.operation(
    f"POST {ONE}/test",
    scope="subscriptions",
    request_headers=kit.WHY_TAKEN,
    is_body_optional=True,
    problems=(kit.Code.NOT_FOUND,),
    deadline_seconds=TOTAL_SECONDS + 5,
    view=kit.Sentences(words.tested),
    commands=(kit.Command(name="subscriptions test"),),
    forms=(
        kit.Form(
            path=SCREEN + "/test",
            title="Send a test",
            button="Send a test",
            preview="get_subscription",
            fields=("type",),
            would=kit.Sentences(
                "One {type} goes to {url}, signed like any other and marked as a test. It is never"
                " sent again."
            ),
            then=SCREEN,
            section=LIST,
        ),
    ),
)
async def test_subscription(
    context: kit.Context, call: kit.Call[SubscriptionParameters, TestRequest]
) -> TrialShown:
    """Send a test notification.

    The example of a type, with `data.test` true, or a mere `subscription.test`; signed like any
    other, never retried, also while the subscription is paused or disabled. `attempts` lists the
    newest twenty.
    """
    subscription_id, asked, why = call.parameters.subscription_id, call.body, call.why
    async with context.pool.connection() as connection:
        await require_visible(connection, call, subscription_id)
        means = await read_signing_means(connection, await context.keyring(), subscription_id)
    if means is None:
        raise absent(subscription_id)
    # between two connections: the receiver may take its whole time to answer
    sent = await send_test(await context.targets(), subscription_id, means, kind=asked.type)
    async with context.pool.connection() as connection:
        await record_test(connection, subscription_id, sent, actor=call.caller.actor, **why)
    came = sent.answer
    return {
        "webhook_id": sent.webhook_id,
        "type": sent.type,
        "outcome": came.outcome,
        "status_code": came.status_code,
        "duration_ms": round(came.duration_seconds * 1000),
        "detail": came.detail or None,
    }


@kit.operation(
    f"GET {ONE}/attempts",
    scope="subscriptions",
    request_headers=kit.WHY_TAKEN,
    problems=(kit.Code.NOT_FOUND, kit.Code.INVALID_CURSOR),
    view=kit.Table(
        "started_at",
        kit.Column("number", "Try"),
        kit.Column(words.attempt_outcome, "Outcome"),
        kit.Column("duration_ms", "ms"),
        kit.Column("webhook_id", "Webhook id"),
        empty="No notification was sent yet.",
    ),
)
async def list_attempts(
    context: kit.Context, call: kit.Call[AttemptsParameters, None]
) -> kit.Page[AttemptShown]:
    """List a subscription's attempts."""
    asked = call.parameters
    bound_to = {"list": "attempts", "of": str(asked.subscription_id)}
    before = (
        None if asked.cursor is None else kit.position_of(asked.cursor, AttemptPosition, bound_to)
    )
    if asked.responses:
        require_scopes(call, [Scope.PII])
    async with context.pool.connection() as connection:
        await require_visible(connection, call, asked.subscription_id)
        found = await read_attempts(
            connection, asked.subscription_id, before=before, limit=asked.limit + 1
        )
        if asked.responses and found:
            target = f"subscription {asked.subscription_id}"
            await context.readings.record(connection, call, name="attempts", target=target)
    shown, more = found[: asked.limit], len(found) > asked.limit
    cursor = (
        kit.encode_position(
            AttemptPosition(shown[-1].recorded_at, shown[-1].webhook_id, shown[-1].number), bound_to
        )
        if more
        else None
    )
    return kit.Page(
        [
            attempt_shown(one, one.response(await context.keyring()) if asked.responses else None)
            for one in shown
        ],
        cursor,
    )


OPERATIONS: Final = (
    pause_subscription,
    resume_subscription,
    rotate_subscription_secret,
    test_subscription,
    list_attempts,
)
