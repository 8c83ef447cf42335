"""`/v1/expectations...`: after how many hours it is observed that something did not happen, of all carriers and of one."""

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
from statesvc.http.operation import Reply, Route, answer, body, operation, parameters
from statesvc.http.paging import Page
from statesvc.http.problem import Code, Problem
from statesvc.shipments.expectation_rules import ALL_CARRIERS

_TAG: Final = "expectations"
_ONE: Final = "/v1/expectations/{carrier_id}"


@dataclass(frozen=True, slots=True)
class ExpectationCalls:
    """The handlers."""

    pool: Connections

    async def all_rules(self, request: web.Request) -> Reply[Page[CarrierExpectations]]:
        """Of all carriers first; they are few."""
        del request
        async with self.pool.connection() as connection:
            stated = await stated_rules(connection)
        return answer(Page([_shown(stated, carrier_id) for carrier_id in dict.fromkeys([ALL_CARRIERS, *stated.rows])], None))

    async def show(self, request: web.Request) -> Reply[CarrierExpectations]:
        """Also of a carrier of which nothing was stated."""
        carrier_id = _carrier_id(request)
        async with self.pool.connection() as connection:
            return answer(_shown(await stated_rules(connection), carrier_id))

    async def preview(self, request: web.Request) -> Reply[RulePreview]:
        """What stating them would do to the shipments that wait now."""
        carrier_id = _carrier_id(request)
        async with self.pool.connection() as connection:
            return answer(await preview_rules(connection, carrier_id, body(request, RulesRequest).rules))

    async def change(self, request: web.Request) -> Reply[CarrierExpectations]:
        """Replaces what is stated."""
        carrier_id, wanted = _carrier_id(request), body(request, RulesStatement)
        async with self.pool.connection() as connection:
            await self._state(connection, request, carrier_id, wanted)
            return answer(_shown(await stated_rules(connection), carrier_id))

    async def _state(self, connection: AsyncConnection[Any], request: web.Request, carrier_id: str, wanted: RulesStatement) -> None:
        actor = caller_of(request).actor
        try:
            await state_rules(connection, carrier_id, wanted.rules, why=wanted.why, actor=actor, replaces=wanted.replaces)
        except RulesChangedError as error:
            raise Problem(
                Code.CONFLICT, f"nothing was done: {error}; preview them again", members={"latest_revision": error.revision}
            ) from error


def _carrier_id(request: web.Request) -> str:
    carrier_id = parameters(request, ExpectationParameters).carrier_id
    if carrier_id in {"all", ALL_CARRIERS}:
        return ALL_CARRIERS
    if carrier_id not in CARRIERS:
        raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; `statesvc carriers` lists them")
    return carrier_id


def _shown(stated: StatedBook, carrier_id: str) -> CarrierExpectations:
    row = stated.of(carrier_id)
    return CarrierExpectations(
        carrier_id=carrier_id,
        revision=row.revision,
        stated=cast("StatedHours", row.rules),
        inherited=cast("AllHours", stated.inherited(carrier_id).hours()),
        in_effect=cast("AllHours", stated.book.of(carrier_id).hours()),
        changed_at=row.changed_at,
        changed_by=row.changed_by,
        why=row.why,
        applied=row.is_applied,
    )


def routes(pool: Connections) -> Sequence[Route]:
    """The calls."""
    calls = ExpectationCalls(pool)
    return [
        Route(
            "GET",
            "/v1/expectations",
            calls.all_rules,
            operation(
                operation_id="list_expectations",
                summary="List what is expected of shipments",
                description="Hours for all carriers first, then for those of which something else was stated.",
                scope="ops",
                tag=_TAG,
                response=Page[CarrierExpectations],
            ),
        ),
        Route(
            "GET",
            _ONE,
            calls.show,
            operation(
                operation_id="get_expectations",
                summary="Show what is expected of a carrier's shipments",
                description="What was stated, what it inherits, and what is in effect.",
                scope="ops",
                tag=_TAG,
                parameters=ExpectationParameters,
                response=CarrierExpectations,
                problems=(Code.UNKNOWN_CARRIER,),
            ),
        ),
        Route(
            "PUT",
            _ONE,
            calls.change,
            operation(
                operation_id="change_expectations",
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
        ),
        Route(
            "POST",
            f"{_ONE}/preview",
            calls.preview,
            operation(
                operation_id="preview_expectations",
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
        ),
    ]
