"""`/v1/expectations...`: after how many hours it is observed that something did not happen, of all carriers, of one, of its services."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from aiohttp import web
from psycopg import AsyncConnection

from events.carriers import CARRIERS
from statesvc.api.expectation_models import (
    AllHours,
    CarrierExpectations,
    ExpectationParameters,
    RulesRequest,
    RulesStatement,
    StatedHours,
)
from statesvc.database.pool import Connections
from statesvc.expectations.rule_changes import RulesChangedError, StatedBook, state_rules, stated_rules
from statesvc.expectations.rule_preview import RulePreview, preview_rules
from statesvc.http.api_keys import caller_of
from statesvc.http.operation import Reply, Route, answer, body, parameters, route
from statesvc.http.paging import Page
from statesvc.http.problem import Code, Problem
from statesvc.shipments.expectation_rules import EVERYTHING, NoRuleScopeError, RuleScope, rule_scope

_TAG: Final = "expectations"
_ONE: Final = "/v1/expectations/{carrier_id}"

_SERVICE_RULE: Final = "A `service` is one carrier's, and is more than blanks and signs."


@dataclass(frozen=True, slots=True)
class ExpectationCalls:
    """The handlers."""

    pool: Connections

    async def all_rules(self, request: web.Request) -> Reply[Page[CarrierExpectations]]:
        """Of all carriers first; they are few."""
        del request
        async with self.pool.connection() as connection:
            stated = await stated_rules(connection)
        return answer(Page([_shown(stated, scope) for scope in dict.fromkeys([EVERYTHING, *stated.rows])], None))

    async def show(self, request: web.Request) -> Reply[CarrierExpectations]:
        """Also of a carrier of which nothing was stated."""
        scope = _scope(request)
        async with self.pool.connection() as connection:
            return answer(_shown(await stated_rules(connection), scope))

    async def preview(self, request: web.Request) -> Reply[RulePreview]:
        """What stating them would do to the shipments that wait now."""
        scope = _scope(request)
        async with self.pool.connection() as connection:
            return answer(await preview_rules(connection, scope, body(request, RulesRequest).rules))

    async def change(self, request: web.Request) -> Reply[CarrierExpectations]:
        """Replaces what is stated."""
        scope, wanted = _scope(request), body(request, RulesStatement)
        async with self.pool.connection() as connection:
            await self._state(connection, request, scope, wanted)
            return answer(_shown(await stated_rules(connection), scope))

    async def _state(self, connection: AsyncConnection[Any], request: web.Request, scope: RuleScope, wanted: RulesStatement) -> None:
        actor = caller_of(request).actor
        try:
            await state_rules(connection, scope, wanted.rules, why=wanted.why, actor=actor, replaces=wanted.replaces)
        except RulesChangedError as error:
            raise Problem(
                Code.CONFLICT, f"nothing was done: {error}; preview them again", members={"latest_revision": error.revision}
            ) from error


def _scope(request: web.Request) -> RuleScope:
    asked = parameters(request, ExpectationParameters)
    try:
        scope = rule_scope(asked.carrier_id, asked.service)
    except NoRuleScopeError as error:
        raise Problem(Code.INVALID_REQUEST, str(error)) from None
    if scope != EVERYTHING and scope.carrier_id not in CARRIERS:
        raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; `statesvc carriers` lists them")
    return scope


def _shown(stated: StatedBook, scope: RuleScope) -> CarrierExpectations:
    row = stated.of(scope)
    return CarrierExpectations(
        carrier_id=row.carrier_id,
        service=row.service or None,
        revision=row.revision,
        stated=cast("StatedHours", row.rules),
        inherited=cast("AllHours", stated.inherited(scope).hours()),
        in_effect=cast("AllHours", stated.book.of(*scope).hours()),
        changed_at=row.changed_at,
        changed_by=row.changed_by,
        why=row.why,
        applied=row.is_applied,
    )


def routes(pool: Connections) -> Sequence[Route]:
    """The calls."""
    calls = ExpectationCalls(pool)
    return [
        route(
            "GET /v1/expectations",
            calls.all_rules,
            operation_id="list_expectations",
            summary="List what is expected of shipments",
            description="Hours for all carriers first, then for carriers and their services of which something else was stated.",
            scope="ops",
            tag=_TAG,
            response=Page[CarrierExpectations],
        ),
        route(
            f"GET {_ONE}",
            calls.show,
            operation_id="get_expectations",
            rules=(_SERVICE_RULE,),
            summary="Show what is expected of a carrier's shipments",
            description="What was stated, what it inherits, and what is in effect.",
            scope="ops",
            tag=_TAG,
            parameters=ExpectationParameters,
            response=CarrierExpectations,
            problems=(Code.UNKNOWN_CARRIER,),
        ),
        route(
            f"PUT {_ONE}",
            calls.change,
            operation_id="change_expectations",
            rules=(_SERVICE_RULE,),
            summary="State what is expected of a carrier's shipments",
            description=(
                "Replaces what was stated: what is left out is inherited. In effect with the next event of each shipment; those that "
                "wait get their deadlines by it from a minute later on, a thousand a second (`applied`). What was observed stays. An "
                "operator action. 409 with `latest_revision` where others stated rules since `replaces`."
            ),
            scope="ops",
            tag=_TAG,
            parameters=ExpectationParameters,
            request=RulesStatement,
            response=CarrierExpectations,
            problems=(Code.UNKNOWN_CARRIER, Code.CONFLICT),
        ),
        route(
            f"POST {_ONE}/preview",
            calls.preview,
            operation_id="preview_expectations",
            rules=(_SERVICE_RULE,),
            summary="Preview rules of what is expected",
            description="Changes nothing: how many shipments would have another deadline, and what would be observed at once.",
            scope="ops",
            tag=_TAG,
            parameters=ExpectationParameters,
            request=RulesRequest,
            response=RulePreview,
            problems=(Code.UNKNOWN_CARRIER,),
            is_computed=True,
            deadline_seconds=30.0,
        ),
    ]
