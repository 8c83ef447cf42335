"""`/v1/expectations...`: hours after which silence is observed, by carrier and service."""

from typing import Final, cast

from statesvc.addons.expectations import awaited_operations as awaited
from statesvc.addons.expectations import promise_operations as promises
from statesvc.addons.expectations.expectation_models import (
    AllHours,
    CarrierExpectations,
    ExpectationParameters,
    RulesRequest,
    RulesStatement,
    StatedHours,
)
from statesvc.addons.expectations.expectation_words import previewed
from statesvc.addons.expectations.rule_changes import (
    RulePreview,
    RulesChangedError,
    StatedBook,
    preview_rules,
    state_rules,
    stated_rules,
)
from statesvc.api import kit
from statesvc.shipments.expectation_rules import EVERYTHING, NoRuleScopeError, RuleScope, rule_scope

_TAG: Final = "expectations"
_ONE: Final = "/v1/expectations/{carrier_id}"
_SERVICE_RULE: Final = "A `service` is one carrier's, and is more than blanks and signs."


@kit.operation("GET /v1/expectations", scope="ops", tag=_TAG)
async def list_expectations(
    context: kit.Context, _call: kit.Call[None, None]
) -> kit.Page[CarrierExpectations]:
    """List the expectations of shipments.

    Hours for all carriers first, then for carriers and services with rules of their own.
    """
    async with context.pool.connection() as connection:
        stated = await stated_rules(connection)
    return kit.Page(
        [_shown(stated, scope) for scope in dict.fromkeys([EVERYTHING, *stated.rows])], None
    )


@kit.operation(
    f"GET {_ONE}",
    scope="ops",
    tag=_TAG,
    rules=(_SERVICE_RULE,),
    problems=(kit.Code.UNKNOWN_CARRIER,),
)
async def get_expectations(
    context: kit.Context, call: kit.Call[ExpectationParameters, None]
) -> CarrierExpectations:
    """Show the expectations of a carrier's shipments.

    Its own rules, those that it inherits, and those in effect.
    """
    scope = _scope(context, call.parameters)
    async with context.pool.connection() as connection:
        return _shown(await stated_rules(connection), scope)


@kit.operation(
    f"PUT {_ONE}",
    scope="ops",
    tag=_TAG,
    rules=(_SERVICE_RULE,),
    problems=(kit.Code.UNKNOWN_CARRIER, kit.Code.CONFLICT),
    view=kit.Sentences("Revision {revision} is in effect with the next event of each shipment."),
)
async def change_expectations(
    context: kit.Context, call: kit.Call[ExpectationParameters, RulesStatement]
) -> CarrierExpectations:
    """Set the expectations of a carrier's shipments.

    Replaces its former rules: hours that are left out are inherited. In effect with the next
    event of each shipment; those that wait get their deadlines by it from a minute later on, a
    thousand a second (`applied`). Past observations stay. An operator action. 409 with
    `latest_revision` if others changed the rules since `replaces`.
    """
    scope, wanted = _scope(context, call.parameters), call.body
    async with context.pool.connection() as connection:
        try:
            await state_rules(
                connection,
                scope,
                wanted.rules,
                why=wanted.why,
                actor=call.caller.actor,
                replaces=wanted.replaces,
            )
        except RulesChangedError as error:
            raise kit.Problem(
                kit.Code.CONFLICT,
                f"nothing was done: {error}; preview them again",
                members={"latest_revision": error.revision},
            ) from error
        return _shown(await stated_rules(connection), scope)


@kit.operation(
    f"POST {_ONE}/preview",
    scope="ops",
    tag=_TAG,
    rules=(_SERVICE_RULE,),
    problems=(kit.Code.UNKNOWN_CARRIER,),
    is_computed=True,
    deadline_seconds=30.0,
    view=kit.Sentences(previewed),
)
async def preview_expectations(
    context: kit.Context, call: kit.Call[ExpectationParameters, RulesRequest]
) -> RulePreview:
    """Preview rules of expectations.

    Changes no data: counts the shipments that would have another deadline, and the observations
    that would be made at once.
    """
    scope = _scope(context, call.parameters)
    async with context.pool.connection() as connection:
        return await preview_rules(connection, scope, call.body.rules)


def _scope(context: kit.Context, wanted: ExpectationParameters) -> RuleScope:
    try:
        scope = rule_scope(wanted.carrier_id, wanted.service)
    except NoRuleScopeError as error:
        raise kit.Problem(kit.Code.INVALID_REQUEST, str(error)) from None
    if scope != EVERYTHING:
        context.carrier(scope.carrier_id)
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


OPERATIONS: Final = (
    *awaited.OPERATIONS,
    *promises.OPERATIONS,
    list_expectations,
    get_expectations,
    change_expectations,
    preview_expectations,
)
