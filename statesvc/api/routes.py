"""All calls of the read API and of the operators."""

from collections.abc import Sequence
from typing import Final

from aiohttp import web

from statesvc.api import (
    action_operations,
    dead_letter_operations,
    dead_letter_settling_operations,
    erasure_operations,
    key_operations,
    legal_hold_operations,
    log_operations,
    lookup_operations,
    message_operations,
    proof_operations,
    queue_operations,
    reference_operations,
    rollout_operations,
    shipment_list_operations,
    shipment_operations,
    status_operations,
    transition_operations,
)
from statesvc.api.operation_context import Context
from statesvc.api.subscriptions import (
    chosen_secrets,
    notification_operations,
    portal_links,
    replay_call,
    sending_operations,
    subscription_operations,
)
from statesvc.http.operation import Handler, Operation, Route, routes_of
from statesvc.http.problem import Code, Problem
from statesvc.http.removed_fields import REMOVED_CALLS
from statesvc.seams import left_out, parts, sentence

# In the order of the document.
_FAMILIES: Final = (
    shipment_list_operations,
    lookup_operations,
    reference_operations,
    shipment_operations,
    erasure_operations,
    message_operations,
    log_operations,
    transition_operations,
    proof_operations,
    dead_letter_operations,
    dead_letter_settling_operations,
    rollout_operations,
    legal_hold_operations,
    queue_operations,
    key_operations,
    status_operations,
    action_operations,
    replay_call,
    portal_links,
    chosen_secrets,
    subscription_operations,
    sending_operations,
    notification_operations,
)


def routes(context: Context) -> Sequence[Route]:
    listed = [*(family.OPERATIONS for family in _FAMILIES), *parts("operations")]
    return [route for operations in listed for route in routes_of(operations, context)]


def refusing_routes() -> list[Route]:
    """Return routes that answer in place of the add-ons that are off and of removed calls."""
    # the first path that matches answers: a removed call before the wildcard of an add-on
    refused = {
        path: (Code.NOT_FOUND, f"the call was removed: {instead}")
        for path, instead in REMOVED_CALLS.items()
    } | {
        path: (Code.ADDON_MISSING, sentence(name, "this call"))
        for name, addon in left_out().items()
        for path in addon.paths
    }
    unchecked: Operation[None] = Operation(operation_id="refused", scope=None, checked=False)
    return [
        Route("*", path, _refusing(code, why), unchecked) for path, (code, why) in refused.items()
    ]


def _refusing(code: Code, why: str) -> Handler:
    async def refuse(_request: web.Request) -> web.StreamResponse:
        raise Problem(code, why)

    return refuse
