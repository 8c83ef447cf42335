"""`/v1/subscriptions`, for scope `subscriptions`. Keys see their owner's; scope `ops` sees all."""

from typing import Any, Final
from uuid import UUID

from statesvc.api import kit
from statesvc.api.subscriptions import subscription_words as words
from statesvc.api.subscriptions.inputs import ages, checked_address, older, requested, watched
from statesvc.api.subscriptions.members import URL_RULE, SubscriptionChange, SubscriptionInput
from statesvc.api.subscriptions.models import (
    SubscriptionDetail,
    SubscriptionListParameters,
    SubscriptionMade,
    SubscriptionParameters,
    SubscriptionShown,
)
from statesvc.api.subscriptions.ownership import (
    absent,
    grants_checked,
    owner_seen_by,
    require_scopes,
    require_visible,
)
from statesvc.api.subscriptions.shown import all_shown, read_shown
from statesvc.http.keys.key_store import Scope
from statesvc.subscriptions import subscription_store as store
from statesvc.subscriptions.key_revocation import needed
from statesvc.subscriptions.recorded_attempts import read_limiter
from statesvc.subscriptions.subscription_secrets import Secret
from statesvc.subscriptions.subscription_store import SubscriptionPosition, Switch

PATH: Final = "/v1/subscriptions"
ONE: Final = PATH + "/{subscription_id}"
# Members that a command states by a flag each, and a form by an input.
_PLAIN: Final = (
    "name",
    "description",
    "carriers",
    "statuses",
    "types",
    "payload",
    "parcels",
    "rate_per_second",
    "max_age_seconds",
)
LIST: Final = "/console/subscriptions"
SCREEN: Final = LIST + "/{subscription_id}"
_SHOWN_ONCE: Final = (kit.Details("secret", "public_keys"), kit.Sentences(words.shown_once))


@kit.operation(
    f"POST {PATH}",
    scope="subscriptions",
    rules=(URL_RULE,),
    statuses={kit.CREATED: "made; `secret` is shown once"},
    request_headers=kit.WHY_TAKEN,
    commands=(kit.Command(name="subscriptions create", fields=("url", *_PLAIN, "key_type")),),
    forms=(
        kit.Form(
            path=LIST + "/create",
            title="Create a subscription",
            button="Create a subscription",
            fields=("url", *_PLAIN, "pii", "coalesce", "key_type"),
            would=kit.Sentences(
                "Changes from now on are sent to {url}. The next page shows its secret."
            ),
            view=_SHOWN_ONCE,
            then=LIST,
        ),
    ),
)
async def create_subscription(
    context: kit.Context, call: kit.Call[None, SubscriptionInput]
) -> SubscriptionMade:
    """Create a subscription."""
    asked = call.body
    # before the address is checked: a key that may not subscribe learns nothing of the network
    require_scopes(call, needed(asked.payload, pii=asked.pii, types=asked.types))
    wish = await requested(asked, context.allowed)
    caller = call.caller
    async with context.pool.connection() as connection:
        with grants_checked():
            subscription_id, secret = await store.create(
                connection,
                await context.keyring(),
                wish,
                actor=caller.actor,
                owner=caller.owner,
                chosen=None,
                **call.why,
            )
        made = await read_shown(connection, context, subscription_id)
    call.headers["Location"] = f"{PATH}/{subscription_id}"
    return {**made, "secret": secret_once(secret)}


@kit.operation(
    f"GET {PATH}",
    scope="subscriptions",
    problems=(kit.Code.INVALID_CURSOR,),
    view=kit.Table(
        kit.Column("id", "ID", link=LIST + "/{id}"),
        "name",
        "state",
        kit.Column("url", "URL", link=LIST + "/{id}"),
        kit.Column("owner", wide=True),
        kit.Column(words.failing_for, "Failing for"),
        kit.Column(words.last_answer, "Last answer"),
        empty="There are no subscriptions.",
    ),
    commands=(kit.Command(name="subscriptions list", fields=("state",)),),
    pages=(
        kit.ConsolePage(
            path=LIST,
            title="Subscriptions",
            menu="Subscriptions",
            filter=("state",),
            acts=(LIST + "/create",),
            is_live=True,
        ),
    ),
)
async def list_subscriptions(
    context: kit.Context, call: kit.Call[SubscriptionListParameters, None]
) -> kit.Page[SubscriptionShown]:
    """List subscriptions."""
    asked = call.parameters
    bound_to = {"list": "subscriptions", "state": asked.state}
    after = (
        None
        if asked.cursor is None
        else kit.position_of(asked.cursor, SubscriptionPosition, bound_to)
    )
    async with context.pool.connection() as connection:
        found = await store.page(
            connection,
            owner=owner_seen_by(call),
            condition=asked.state,
            after=after,
            limit=asked.limit + 1,
        )
        shown, more = found[: asked.limit], len(found) > asked.limit
        items = await all_shown(connection, context, shown)
    cursor = (
        kit.encode_position(
            SubscriptionPosition(shown[-1].created_at, shown[-1].subscription_id), bound_to
        )
        if more
        else None
    )
    return kit.Page(items, cursor)


@kit.operation(
    f"GET {ONE}",
    scope="subscriptions",
    problems=(kit.Code.NOT_FOUND,),
    view=kit.Details(
        kit.Column("id", "ID"),
        "name",
        "description",
        "state",
        kit.Column("url", "URL"),
        "owner",
        "created_at",
        kit.Column("created_by", "By"),
        "carriers",
        "statuses",
        "types",
        kit.Column("shipments", "Shipments"),
        "payload",
        kit.Column("pii", "Personal fields"),
        "parcels",
        kit.Column("coalesce", "Merges when too much waits"),
        kit.Column("rate_per_second", "At most a second"),
        kit.Column("max_age_seconds", "Not older than, in seconds"),
        kit.Column(words.give_up_after, "Gives up after"),
        kit.Column("key_type", "Signed"),
        "public_keys",
        kit.Column("signature.header", "Also signed in"),
        kit.Column("headers", "Own headers"),
        "paused_at",
        "disabled_at",
        kit.Column("disabled_why", "Disabled because"),
        "missed_since",
        kit.Column(words.failing_for, "Failing for"),
        kit.Column(words.last_answer, "Last answer"),
        kit.Column(words.pace, "Pace"),
        kit.Column("limiter.next_allowed_at", "Nothing before"),
    ),
    commands=(
        kit.Command(
            name="subscriptions show",
            summary="show a subscription with its limiter and last attempts",
            also=(kit.Also("list_attempts", "attempts"),),
        ),
    ),
)
async def get_subscription(
    context: kit.Context, call: kit.Call[SubscriptionParameters, None]
) -> SubscriptionDetail:
    """Show a subscription."""
    subscription_id = call.parameters.subscription_id
    async with context.pool.connection() as connection:
        await require_visible(connection, call, subscription_id)
        shown = await read_shown(connection, context, subscription_id)
        limiter = await read_limiter(connection, subscription_id)
    return {**shown, "limiter": limiter}


@kit.operation(
    f"PATCH {ONE}",
    scope="subscriptions",
    rules=(URL_RULE, "`pii` is for the payload `full`."),
    request_headers=kit.WHY_TAKEN,
    problems=(kit.Code.NOT_FOUND, kit.Code.CONFLICT),
    view=kit.Sentences("Subscription {id} is changed."),
    commands=(kit.Command(name="subscriptions change", fields=("url", *_PLAIN)),),
    forms=(
        kit.Form(
            path=SCREEN + "/change",
            title="Change a subscription",
            button="Change",
            preview="get_subscription",
            is_filled=True,
            fields=("url", *_PLAIN, "pii", "coalesce"),
            then=SCREEN,
            section=LIST,
        ),
    ),
)
async def change_subscription(
    context: kit.Context, call: kit.Call[SubscriptionParameters, SubscriptionChange]
) -> SubscriptionShown:
    """Change a subscription."""
    subscription_id, asked = call.parameters.subscription_id, call.body
    async with context.pool.connection() as connection:
        await require_visible(connection, call, subscription_id)
    # what is stated as null changes; what is left out stays
    stated = asked.model_fields_set
    changes: dict[str, Any] = asked.model_dump(
        mode="json", include=stated - {"shipments", "give_up_after_seconds", "signature"}
    )
    if "shipments" in stated:
        changes["shipments"] = watched(asked.shipments)
    if "give_up_after_seconds" in stated:
        changes["give_up_after"] = ages(asked.give_up_after_seconds)
    if "signature" in stated:
        changes["signature"] = older(asked.signature)
    if asked.pii:
        require_scopes(call, [Scope.PII])
    login = None
    if "url" in changes:
        # with no connection held: it asks the resolver
        changes["url"], login = await checked_address(asked.url, context.allowed)
    caller = call.caller
    async with context.pool.connection() as connection:
        if changes:
            with grants_checked():
                await store.change(
                    connection,
                    # a plain change seals nothing, and needs no master key
                    await context.keyring() if login is not None or asked.headers else None,
                    subscription_id,
                    changes,
                    actor=caller.actor,
                    scopes=caller.scopes,
                    login=login,
                    **call.why,
                )
        return await read_shown(connection, context, subscription_id)


@kit.operation(
    f"DELETE {ONE}",
    scope="subscriptions",
    statuses={kit.NO_CONTENT: "ended"},
    request_headers=kit.WHY_TAKEN,
    problems=(kit.Code.NOT_FOUND,),
    view=kit.Sentences("Subscription {subscription_id} is deleted."),
    commands=(kit.Command(name="subscriptions delete"),),
    forms=(
        kit.Form(
            path=SCREEN + "/delete",
            title="Delete a subscription",
            button="Delete",
            preview="get_subscription",
            would=kit.Sentences(
                "Nothing is sent to {url} any more, and what waits for it goes nowhere. Its secret"
                " ends.",
                "It cannot be undone: a new subscription has another id and another secret. To stop"
                " for a while, pause it.",
            ),
            then=LIST,
            is_drastic=True,
        ),
    ),
)
async def delete_subscription(
    context: kit.Context, call: kit.Call[SubscriptionParameters, None]
) -> None:
    """Delete a subscription."""
    await switch(context, call, "delete")


async def switch(
    context: kit.Context, call: kit.Call[SubscriptionParameters, None], switch: Switch
) -> UUID:
    subscription_id = call.parameters.subscription_id
    async with context.pool.connection() as connection:
        await require_visible(connection, call, subscription_id)
        with grants_checked():
            turned = await store.change_state(
                connection, subscription_id, switch, actor=call.caller.actor, **call.why
            )
        if not turned:
            raise absent(subscription_id)
    return subscription_id


def secret_once(secret: Secret) -> str | None:
    # the private half of a pair leaves the service for nobody
    return secret.shown if secret.kind == "hmac" else None


OPERATIONS: Final = (
    create_subscription,
    list_subscriptions,
    get_subscription,
    change_subscription,
    delete_subscription,
)
