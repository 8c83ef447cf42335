"""`PUT /v1/subscriptions/{id}` and its secret: under an id and a secret that the caller chose, so the same call again changes nothing.

So one subscription is made in several cells, and secrets come along from another sender of webhooks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from aiohttp import web

from events.crypto.keyring import Keyring
from statesvc.api.subscriptions.models import URL_RULE, ChosenSecret, ChosenSubscription, SubscriptionParameters, SubscriptionShown
from statesvc.api.subscriptions.ownership import grants_checked, owner_seen_by, require_scopes, require_visible
from statesvc.api.subscriptions.shown import read_shown
from statesvc.api.subscriptions.wishes import requested
from statesvc.database.pool import Connections
from statesvc.delivery.addresses import Network
from statesvc.http.api_keys import caller_of
from statesvc.http.operation import WHY_TAKEN, Reply, Route, answer, body, parameters, route, why_of
from statesvc.http.problem import CREATED, OK, Code, Problem
from statesvc.subscriptions import subscription_store as store
from statesvc.subscriptions.key_revocation import needed
from statesvc.subscriptions.subscription_secrets import Secret
from statesvc.subscriptions.subscription_store import SubscriptionExistsError

_ONE = "/v1/subscriptions/{subscription_id}"


@dataclass(frozen=True, slots=True)
class ChosenSubscriptions:
    """The handlers. `allowed`: as for other subscriptions."""

    pool: Connections
    keyring: Keyring
    allowed: Sequence[Network]

    async def put(self, request: web.Request) -> Reply[SubscriptionShown]:
        """Makes it, or finds that it is there as wished."""
        subscription_id, asked = parameters(request, SubscriptionParameters).subscription_id, body(request, ChosenSubscription)
        require_scopes(request, needed(asked.payload, pii=asked.pii))
        wish, secret, caller = await requested(asked, self.allowed), Secret.chosen(asked.secret), caller_of(request)
        async with self.pool.connection() as connection:
            status = CREATED
            try:
                with grants_checked():
                    chosen = (subscription_id, secret)
                    await store.create(
                        connection, self.keyring, wish, actor=caller.actor, owner=caller.owner, chosen=chosen, **why_of(request)
                    )
            except SubscriptionExistsError:
                status = OK
                found = await store.find(connection, subscription_id)
                is_visible = found is not None and owner_seen_by(request) in {None, found.owner}
                if found is None or not is_visible or not await store.is_as_wished(connection, self.keyring, found, wish, secret):
                    said = "there is, or was, another subscription under this id: change it by PATCH, its secret by PUT .../secret"
                    raise Problem(Code.CONFLICT, said) from None
            return answer(await read_shown(connection, self.keyring, subscription_id), status=status)

    async def put_secret(self, request: web.Request) -> Reply[SubscriptionShown]:
        """Signs with this secret from now on; the former one signs too until the grace is over."""
        subscription_id, asked = parameters(request, SubscriptionParameters).subscription_id, body(request, ChosenSecret)
        async with self.pool.connection() as connection:
            await require_visible(connection, request, subscription_id)
            await store.rotate(
                connection,
                self.keyring,
                subscription_id,
                grace=timedelta(hours=asked.grace_hours),
                actor=caller_of(request).actor,
                signature=None,
                chosen=Secret.chosen(asked.secret),
                **why_of(request),
            )
            return answer(await read_shown(connection, self.keyring, subscription_id))

    def routes(self) -> Sequence[Route]:
        """Both calls."""
        return [
            route(
                f"PUT {_ONE}",
                self.put,
                operation_id="put_subscription",
                rules=(URL_RULE, "The `secret` is base64 of as many bytes as it says, and of the kind of `signature`."),
                summary="Subscribe under a chosen id and secret",
                description="The same call again changes nothing: repeat it until it is answered. One subscription in several cells "
                "has the same id and secret in each (docs/cells.md).",
                scope="subscriptions",
                tag="subscriptions",
                parameters=SubscriptionParameters,
                request=ChosenSubscription,
                request_headers=WHY_TAKEN,
                response=SubscriptionShown,
                statuses={CREATED: "made", OK: "it was there, as wished"},
                problems=(Code.CONFLICT,),
            ),
            route(
                f"PUT {_ONE}/secret",
                self.put_secret,
                operation_id="put_subscription_secret",
                rules=("The `secret` is base64 of as many bytes as it says.",),
                summary="Sign with a chosen secret",
                description="Like `rotate-secret`, with a secret of your own, and again changes nothing where it signs already.",
                scope="subscriptions",
                tag="subscriptions",
                parameters=SubscriptionParameters,
                request=ChosenSecret,
                request_headers=WHY_TAKEN,
                response=SubscriptionShown,
                problems=(Code.NOT_FOUND,),
            ),
        ]
