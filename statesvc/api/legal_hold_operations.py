"""`/v1/legal-holds`: numbers exempt from the retention of bodies."""

from typing import Annotated, Any, Final

from pydantic import Field

from statesvc.api import kit
from statesvc.api.erasure_words import would_hold, would_release
from statesvc.bodies import legal_holds
from statesvc.bodies.legal_holds import HoldRefusal, LegalHold, place_hold, release_hold
from statesvc.log.archived_files import require_archive

_TAG: Final = "legal holds"
_NUMBER: Final = ("carrier_id", "tracking_number")
_SHIPMENT: Final = "/console/shipments/{carrier_id}/{tracking_number}"


class LegalHoldsParameters(kit.PageParameters):
    """Legal holds, the newest first."""

    carrier_id: Annotated[kit.Name | None, Field(description="Only those of this carrier.")] = None
    tracking_number: Annotated[
        kit.Name | None,
        Field(
            description=(
                "Only those on this number. With `carrier_id` in any spelling, without it in none"
                " of a carrier's own."
            )
        ),
        kit.FieldFace(flag="--tracking"),
    ] = None
    released: Annotated[
        bool, Field(description="Those that were released, too."), kit.FieldFace(flag="--all")
    ] = False


class LegalHoldPlacement(kit.ClosedModel):
    """A hold to place, on all shipments that bear the number."""

    carrier_id: Annotated[kit.Name, kit.FieldFace(help="a carrier id")]
    tracking_number: Annotated[
        kit.Name,
        Field(description="In any spelling: case, blanks and hyphens do not matter."),
        kit.FieldFace(metavar="tracking"),
    ]
    why: kit.RequiredWhy


class LegalHoldRelease(LegalHoldPlacement):
    """A hold to release."""


@kit.operation(
    "GET /v1/legal-holds",
    scope="audit",
    tag=_TAG,
    problems=(kit.Code.INVALID_CURSOR, kit.Code.UNKNOWN_CARRIER),
    view=kit.Table(
        "carrier_id",
        kit.Column("tracking_number", link="/console/shipments/{carrier_id}/{tracking_number}"),
        "placed_at",
        kit.Column("placed_by", "By"),
        "why",
        "released_at",
        "released_by",
        kit.Column("released_why", "Why released"),
        empty="No legal hold is in force.",
    ),
    commands=(kit.Command(name="legal-hold list"),),
    pages=(
        kit.ConsolePage(
            path="/console/legal-holds",
            title="Legal holds",
            section="/console/shipments",
            filter=("carrier_id", "tracking_number", "released"),
        ),
    ),
)
async def list_legal_holds(
    context: kit.Context, call: kit.Call[LegalHoldsParameters, None]
) -> kit.Page[LegalHold]:
    """List legal holds."""
    wanted = call.parameters
    bound_to: dict[str, Any] = {
        "list": "legal-holds",
        **wanted.model_dump(include={"carrier_id", "tracking_number", "released"}),
    }
    before = kit.before_number(wanted.cursor, bound_to)
    async with context.pool.connection() as connection:
        holds, more = await legal_holds.list_holds(
            connection,
            carrier_id=wanted.carrier_id,
            tracking_number=wanted.tracking_number,
            released_too=wanted.released,
            before=before,
            limit=wanted.limit,
        )
    if not holds:
        context.refuse_unknown(wanted.carrier_id)
    return kit.Page(holds, None if more is None else kit.encode_cursor([more], bound_to))


@kit.operation(
    "POST /v1/legal-holds",
    scope="admin",
    tag=_TAG,
    statuses={kit.CREATED: "placed"},
    problems=(
        kit.Code.NOT_FOUND,
        kit.Code.UNKNOWN_CARRIER,
        kit.Code.CONFLICT,
        kit.Code.ADDON_MISSING,
    ),
    view=kit.Sentences("{carrier_id} {number}: held"),
    commands=(kit.Command(name="legal-hold place", arguments=_NUMBER),),
    forms=(
        kit.Form(
            path=_SHIPMENT + "/hold",
            title="Legal hold on {tracking_number}",
            button="Place it",
            preview="list_legal_holds",
            would=kit.Sentences(would_hold),
            then=_SHIPMENT,
            section="/console/shipments",
        ),
    ),
)
async def place_legal_hold(
    context: kit.Context, call: kit.Call[None, LegalHoldPlacement]
) -> LegalHold:
    """Place a legal hold.

    The bodies of all messages that name a shipment with this number outlive their archive, and the
    shipment is not erased without an explicit override, until the hold is released. Recorded as an
    operator action.
    """
    async with context.pool.connection() as connection:
        await require_archive(connection, "a legal hold")
        outcome = await place_hold(connection, **call.body.model_dump(), actor=call.caller.actor)
    return _held(context, outcome, call.body.carrier_id)


@kit.operation(
    "POST /v1/legal-holds/release",
    scope="admin",
    tag=_TAG,
    problems=(kit.Code.NOT_FOUND, kit.Code.UNKNOWN_CARRIER),
    view=kit.Sentences("{carrier_id} {number}: released"),
    commands=(kit.Command(name="legal-hold release", arguments=_NUMBER),),
    forms=(
        kit.Form(
            path=_SHIPMENT + "/release-hold",
            title="Release the legal hold on {tracking_number}",
            button="Release it",
            preview="list_legal_holds",
            would=kit.Sentences(would_release),
            then=_SHIPMENT,
            section="/console/shipments",
            is_drastic=True,
        ),
    ),
)
async def release_legal_hold(
    context: kit.Context, call: kit.Call[None, LegalHoldRelease]
) -> LegalHold:
    """Release a legal hold.

    Retention goes on as for any other shipment. Recorded as an operator action.
    """
    async with context.pool.connection() as connection:
        outcome = await release_hold(connection, **call.body.model_dump(), actor=call.caller.actor)
    return _held(context, outcome, call.body.carrier_id)


def _held(context: kit.Context, outcome: LegalHold | HoldRefusal, carrier_id: str) -> LegalHold:
    if not isinstance(outcome, LegalHold):
        context.refuse_unknown(carrier_id)
    match outcome:
        case LegalHold():
            return outcome
        case HoldRefusal.UNKNOWN_NUMBER | HoldRefusal.NONE_STANDS:
            raise kit.Problem(kit.Code.NOT_FOUND, outcome.value)
        case HoldRefusal.STANDS_ALREADY:
            raise kit.Problem(kit.Code.CONFLICT, outcome.value)


OPERATIONS: Final = (list_legal_holds, place_legal_hold, release_legal_hold)
