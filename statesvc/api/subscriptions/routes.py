"""The calls about subscriptions, for the role `api`."""

from collections.abc import Sequence
from typing import Final

from statesvc.api.operation_context import Context
from statesvc.api.subscriptions import (
    chosen_secrets,
    notification_operations,
    portal_links,
    replay_call,
    sending_operations,
    subscription_operations,
)
from statesvc.http.operation import Route, routes_of

OPERATIONS: Final = (
    *replay_call.OPERATIONS,
    *portal_links.OPERATIONS,
    *chosen_secrets.OPERATIONS,
    *subscription_operations.OPERATIONS,
    *sending_operations.OPERATIONS,
    *notification_operations.OPERATIONS,
)


def routes(context: Context) -> Sequence[Route]:
    return routes_of(OPERATIONS, context)
