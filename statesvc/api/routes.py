"""All calls of the read API and of the operators."""

from collections.abc import Sequence

from aiohttp import web

from statesvc.api import action_operations as actions
from statesvc.api import dead_letter_operations as dead_letters
from statesvc.api import dead_letter_settling_operations as dead_letter_settling
from statesvc.api import erasure_operations as erasure
from statesvc.api import key_operations as keys
from statesvc.api import legal_hold_operations as legal_holds
from statesvc.api import log_operations as log
from statesvc.api import lookup_operations as lookups
from statesvc.api import message_operations as messages
from statesvc.api import proof_operations as proofs
from statesvc.api import queue_operations as queue
from statesvc.api import reference_operations as references
from statesvc.api import rollout_operations as rollouts
from statesvc.api import shipment_list_operations as shipment_list
from statesvc.api import shipment_operations as shipments
from statesvc.api import status_operations as status
from statesvc.api import transition_operations as transitions
from statesvc.api.operation_context import Context
from statesvc.http.operation import Handler, Operation, Route, routes_of
from statesvc.http.problem import Code, Problem
from statesvc.http.removed_fields import REMOVED_CALLS
from statesvc.seams import left_out, parts, sentence


def routes(context: Context) -> Sequence[Route]:
    return [
        *routes_of(shipment_list.OPERATIONS, context),
        *routes_of(lookups.OPERATIONS, context),
        *routes_of(references.OPERATIONS, context),
        *routes_of(shipments.OPERATIONS, context),
        *routes_of(erasure.OPERATIONS, context),
        *routes_of(messages.OPERATIONS, context),
        *routes_of(log.OPERATIONS, context),
        *routes_of(transitions.OPERATIONS, context),
        *routes_of(proofs.OPERATIONS, context),
        *routes_of(dead_letters.OPERATIONS, context),
        *routes_of(dead_letter_settling.OPERATIONS, context),
        *routes_of(rollouts.OPERATIONS, context),
        *routes_of(legal_holds.OPERATIONS, context),
        *routes_of(queue.OPERATIONS, context),
        *routes_of(keys.OPERATIONS, context),
        *routes_of(status.OPERATIONS, context),
        *routes_of(actions.OPERATIONS, context),
        *(route for listed in parts("operations") for route in routes_of(listed, context)),
    ]


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
