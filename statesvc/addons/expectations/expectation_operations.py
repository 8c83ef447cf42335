"""`/v1/expectations...`: hours after which silence is observed, by carrier and service."""

from collections.abc import Iterator
from typing import Annotated, Final, cast

from pydantic import AwareDatetime, ConfigDict, Field, with_config
from typing_extensions import TypedDict

from events.parsing.service_name import SERVICE_CHARACTERS_MAX
from statesvc.addons.expectations import awaited_operations as awaited
from statesvc.addons.expectations import promise_operations as promises
from statesvc.addons.expectations.rule_changes import (
    RulePreview,
    RulesChangedError,
    StatedBook,
    preview_rules,
    state_rules,
    stated_rules,
)
from statesvc.api import kit
from statesvc.api.parameters import Name
from statesvc.http.closed_model import ClosedModel
from statesvc.http.views import Answer, counted
from statesvc.shipments.expectation_rules import EVERYTHING, NoRuleScopeError, RuleScope, rule_scope

HOURS_MAX: Final = 8_760
REVISION_MAX: Final = 2**63 - 1
WHY_LENGTH_MAX: Final = 1000
_CLOSED: Final = ConfigDict(extra="forbid")

Hours = Annotated[int | None, Field(ge=0, le=HOURS_MAX, description="Null: never.")]
HoursFromOne = Annotated[int | None, Field(ge=1, le=HOURS_MAX, description="Null: never.")]


@with_config(_CLOSED)
class StalledHours(TypedDict, total=False):
    """Hours after the last scan, by the status that the shipment is in."""

    picked_up: HoursFromOne
    in_transit: HoursFromOne
    exception: HoursFromOne
    out_for_delivery: HoursFromOne
    delivery_attempted: HoursFromOne
    returning: HoursFromOne


@with_config(_CLOSED)
class StatedHours(TypedDict, total=False):
    """Hours after which silence is observed. They count from the times in docs/expectations.md.

    Hours that are left out are inherited.
    """

    stalled: StalledHours
    not_picked_up: HoursFromOne
    overdue: Hours
    delivery_missed: Hours
    pickup_expiring: HoursFromOne


class AllHours(TypedDict):
    """Hours after which silence is observed; null: never."""

    stalled: Annotated[
        dict[str, int | None], Field(description="By the status that the shipment is in.")
    ]
    not_picked_up: int | None
    overdue: int | None
    delivery_missed: int | None
    pickup_expiring: int | None


class ExpectationParameters(ClosedModel):
    """A carrier, or one of its services."""

    carrier_id: Annotated[
        Name, Field(description="A carrier_id; `all` or `*` for those that say nothing themselves.")
    ]
    service: Annotated[
        str | None,
        Field(
            max_length=SERVICE_CHARACTERS_MAX,
            description=(
                "One of the carrier's services, as the carrier names it; case and blanks do not"
                " matter. Left out: the carrier."
            ),
            examples=["UPS Ground"],
        ),
    ] = None


class RulesRequest(ClosedModel):
    """Rules of a carrier, whole: they replace its former rules."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"rules": {"stalled": {"in_transit": 96}, "pickup_expiring": None}}]
        }
    )

    rules: StatedHours


class RulesStatement(RulesRequest):
    """Rules with a reason for the change."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "rules": {"stalled": {"in_transit": 96}},
                    "why": "their contract of 2026-11",
                    "replaces": 0,
                }
            ]
        },
    )

    why: Annotated[
        str,
        Field(
            min_length=1,
            max_length=WHY_LENGTH_MAX,
            pattern=r"^[^\x00]*\S[^\x00]*$",
            description="Stands in the log for ever: nothing personal.",
        ),
    ]
    replaces: Annotated[
        int | None,
        Field(
            ge=0,
            le=REVISION_MAX,
            description=(
                "As the preview said: 409 where others stated rules since. Null: whatever is there."
            ),
        ),
    ] = None


class CarrierExpectations(TypedDict):
    """Expectations of the shipments of a carrier or of its service."""

    carrier_id: Annotated[str, Field(description="`*`: all that say nothing themselves.")]
    service: Annotated[
        str | None,
        Field(
            description=(
                "As it is compared: in lower case. Null: those that state nothing themselves."
            )
        ),
    ]
    revision: Annotated[int, Field(description="0: nothing was ever stated.")]
    stated: StatedHours
    inherited: Annotated[
        AllHours,
        Field(
            description=(
                "What holds where it states nothing: of the carrier, of all carriers, or our"
                " defaults."
            )
        ),
    ]
    in_effect: AllHours
    changed_at: AwareDatetime | None
    changed_by: str | None
    why: str
    applied: Annotated[
        bool,
        Field(
            description=(
                "Shipments that wait have their deadlines by it; new ones have them at once."
            )
        ),
    ]


_TAG: Final = "expectations"
_ONE: Final = "/v1/expectations/{carrier_id}"
_SERVICE_RULE: Final = "A `service` is one carrier's, and is more than blanks and signs."


def previewed(answer: Answer) -> Iterator[str]:
    least = "At least " if answer["counts_capped"] else ""
    yield (
        f"{least}{answer['rearmed']:,} of {counted(answer['shipments'], 'unfinished shipment')} get"
        " another deadline."
    )
    kinds = ", ".join(
        f"{count:,} {kind.replace('_', ' ')}" for kind, count in answer["observed_at_once"].items()
    )
    yield (
        f"{least}this would be observed at once, and notified: {kinds}."
        if kinds
        else ("Nothing would be observed at once.")
    )


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
