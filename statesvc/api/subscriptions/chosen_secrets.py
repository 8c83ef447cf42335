"""`PUT /v1/subscriptions/{id}` and its secret: idempotent, by a chosen id and secret.

So a subscription can be made in several installations, and secrets can come along from another
sender of webhooks.
"""

from datetime import timedelta
from typing import Final

from statesvc.api import kit
from statesvc.api.subscriptions.inputs import requested
from statesvc.api.subscriptions.members import URL_RULE, ChosenSecret, ChosenSubscription
from statesvc.api.subscriptions.models import SubscriptionParameters, SubscriptionShown
from statesvc.api.subscriptions.ownership import (
    grants_checked,
    owner_seen_by,
    require_scopes,
    require_visible,
)
from statesvc.api.subscriptions.shown import read_shown
from statesvc.subscriptions import subscription_store as store
from statesvc.subscriptions.key_revocation import needed
from statesvc.subscriptions.subscription_secrets import Secret
from statesvc.subscriptions.subscription_store import SubscriptionExistsError

_ONE: Final = "/v1/subscriptions/{subscription_id}"


@kit.operation(
    f"PUT {_ONE}",
    scope="subscriptions",
    tag="subscriptions",
    rules=(
        URL_RULE,
        "The `secret` is base64 of as many bytes as it says, and of the kind of `key_type`.",
    ),
    request_headers=kit.WHY_TAKEN,
    statuses={kit.CREATED: "made", kit.OK: "it was there, as wished"},
    problems=(kit.Code.CONFLICT,),
)
async def put_subscription(
    context: kit.Context, call: kit.Call[SubscriptionParameters, ChosenSubscription]
) -> SubscriptionShown:
    """Create a subscription under a chosen id and secret.

    The same call again changes no data: repeat it until it is answered. A subscription in
    several installations has the same id and secret in each (docs/engines.md).
    """
    subscription_id, wanted, caller = call.parameters.subscription_id, call.body, call.caller
    require_scopes(call, needed(wanted.payload, pii=wanted.pii, types=wanted.types))
    wish, secret = await requested(wanted, context.allowed), Secret.chosen(wanted.secret)
    keyring = await context.keyring()
    async with context.pool.connection() as connection:
        try:
            with grants_checked():
                chosen = (subscription_id, secret)
                await store.create(
                    connection,
                    keyring,
                    wish,
                    actor=caller.actor,
                    owner=caller.owner,
                    chosen=chosen,
                    **call.why,
                )
        except SubscriptionExistsError:
            # the same call again, after an answer that was lost
            call.status = kit.OK
            found = await store.find(connection, subscription_id)
            is_visible = found is not None and owner_seen_by(call) in {None, found.owner}
            if (
                found is None
                # another owner's subscription gets the same answer as a deleted one
                or not is_visible
                or not await store.matches_request(connection, keyring, found, wish, secret)
            ):
                said = (
                    "there is, or was, another subscription under this id: change it by PATCH, its"
                    " secret by PUT .../secret"
                )
                raise kit.Problem(kit.Code.CONFLICT, said) from None
        return await read_shown(connection, context, subscription_id)


@kit.operation(
    f"PUT {_ONE}/secret",
    scope="subscriptions",
    tag="subscriptions",
    rules=("The `secret` is base64 of as many bytes as it says.",),
    request_headers=kit.WHY_TAKEN,
    problems=(kit.Code.NOT_FOUND, kit.Code.CONFLICT),
)
async def put_subscription_secret(
    context: kit.Context, call: kit.Call[SubscriptionParameters, ChosenSecret]
) -> SubscriptionShown:
    """Set a subscription's secret.

    Like `rotate-secret`, with a secret of your own; no change if it signs already.
    """
    subscription_id, keyring = call.parameters.subscription_id, await context.keyring()
    async with context.pool.connection() as connection:
        await require_visible(connection, call, subscription_id)
        with grants_checked():
            await store.rotate(
                connection,
                keyring,
                subscription_id,
                grace=timedelta(hours=call.body.grace_hours),
                actor=call.caller.actor,
                key_type=None,
                chosen=Secret.chosen(call.body.secret),
                **call.why,
            )
        return await read_shown(connection, context, subscription_id)


OPERATIONS: Final = (put_subscription, put_subscription_secret)
