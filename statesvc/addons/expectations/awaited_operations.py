"""`.../awaited`, `/v1/awaited-numbers`: numbers of which something must be heard."""

from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from statesvc.addons.expectations.awaited_numbers import (
    HOURS_MAX,
    AwaitedPosition,
    await_number,
    list_unheard,
    stop_awaiting,
)
from statesvc.api import kit
from statesvc.api.reference_operations import attached_to
from statesvc.shipments.references import NumberErasedError

_PATH: Final = "/v1/shipments/{carrier_id}/{tracking_number}/awaited"


class AwaitedWithin(kit.ClosedModel):
    """Time to wait."""

    hours: Annotated[
        int, Field(ge=1, le=HOURS_MAX, description="Within so many hours something must be heard.")
    ]


class AwaitedShown(TypedDict):
    """A number that is awaited."""

    carrier_id: str
    number: Annotated[str, Field(description="The tracking number as it is compared.")]
    hours: int
    awaited_at: Annotated[AwareDatetime, Field(description="From when on the hours count.")]
    due_at: Annotated[
        AwareDatetime,
        Field(description="When `shipment.never_heard` follows, unless something is heard before."),
    ]


class AwaitedNumbersParameters(kit.PageParameters):
    """Selection of awaited numbers without an event."""

    carrier_id: Annotated[kit.Name | None, Field(description="Only those of this carrier.")] = None
    never_heard: Annotated[
        bool,
        Field(
            description=(
                "Those whose hours are over, for 30 days since, instead of those that are still"
                " waited for."
            )
        ),
    ] = False
    order: Annotated[
        Literal["oldest", "newest"],
        Field(
            description=(
                "Of the time at which they are, or were, due: the earliest first, or the latest."
            )
        ),
    ] = "oldest"


class ListedAwaited(AwaitedShown):
    """An awaited number in a list."""

    observed_at: Annotated[
        AwareDatetime | None,
        Field(description="When `shipment.never_heard` was sent; null: it is still waited for."),
    ]


@kit.operation(
    "GET /v1/awaited-numbers",
    scope="read",
    tag="shipments",
    problems=(kit.Code.INVALID_CURSOR, kit.Code.UNKNOWN_CARRIER),
    view=kit.Table(
        kit.Column("number", link="/console/shipments/{carrier_id}/{number}"),
        "carrier_id",
        "hours",
        "awaited_at",
        "due_at",
        kit.Column("observed_at", "Notified"),
        empty="No number matches.",
    ),
    commands=(kit.Command(name="shipments awaited"),),
    pages=(
        kit.ConsolePage(
            path="/console/awaited",
            title="Awaited numbers",
            menu="Awaited numbers",
            group="Parcels",
            filter=("carrier_id", "never_heard", "order"),
            preset={"never_heard": "true", "order": "newest"},
        ),
    ),
)
async def list_awaited_numbers(
    context: kit.Context, call: kit.Call[AwaitedNumbersParameters, None]
) -> kit.Page[ListedAwaited]:
    """List awaited numbers without an event.

    A page may be short, or empty, and still have a `next_cursor`: numbers with an event
    meanwhile are left out.
    """
    wanted = call.parameters
    bound_to: dict[str, Any] = {
        "list": "awaited-numbers",
        **wanted.model_dump(include={"carrier_id", "never_heard", "order"}),
    }
    async with context.pool.connection() as connection:
        numbers, end = await list_unheard(
            connection,
            carrier_id=wanted.carrier_id,
            never_heard=wanted.never_heard,
            newest_first=wanted.order == "newest",
            after=None
            if wanted.cursor is None
            else kit.position_of(wanted.cursor, AwaitedPosition, bound_to),
            limit=wanted.limit,
        )
    if not numbers:
        context.refuse_unknown(wanted.carrier_id)
    return kit.Page(
        [
            {
                "carrier_id": one.carrier_id,
                "number": one.number,
                "hours": one.hours,
                "awaited_at": one.awaited_at,
                "due_at": one.due_at,
                "observed_at": one.observed_at,
            }
            for one in numbers
        ],
        None if end is None else kit.encode_position(end, bound_to),
    )


@kit.operation(
    f"PUT {_PATH}",
    scope="ingest",
    tag="shipments",
    request_headers=kit.WHY_TAKEN,
    problems=(kit.Code.UNKNOWN_CARRIER, kit.Code.CONFLICT),
)
async def await_shipment(
    context: kit.Context, call: kit.Call[kit.NumberParameters, AwaitedWithin]
) -> AwaitedShown:
    """Await a tracking number.

    For a number that was registered with its carrier: without an event within these hours, from
    the carrier or from an aggregator that names it, `shipment.never_heard` is sent, once. It
    waits longer while the carrier is held, behind or silent altogether. A repeated call with
    the same hours has no effect; other hours count from the first call. The log records the
    caller.
    """
    number = attached_to(context, call.parameters)
    async with context.pool.connection() as connection:
        try:
            awaited = await await_number(
                connection, number, call.body.hours, actor=call.caller.actor, why=call.why
            )
        except NumberErasedError as error:
            raise kit.Problem(kit.Code.CONFLICT, str(error)) from None
    return {
        "carrier_id": number.carrier_id,
        "number": number.number,
        "hours": awaited.hours,
        "awaited_at": awaited.awaited_at,
        "due_at": awaited.due_at,
    }


@kit.operation(
    f"DELETE {_PATH}",
    scope="ingest",
    tag="shipments",
    request_headers=kit.WHY_TAKEN,
    statuses={kit.NO_CONTENT: "it is awaited no longer"},
    problems=(kit.Code.UNKNOWN_CARRIER, kit.Code.NOT_FOUND),
)
async def stop_awaiting_shipment(
    context: kit.Context, call: kit.Call[kit.NumberParameters, None]
) -> None:
    """Stop awaiting a tracking number."""
    async with context.pool.connection() as connection:
        if not await stop_awaiting(
            connection, attached_to(context, call.parameters), actor=call.caller.actor, why=call.why
        ):
            raise kit.Problem(kit.Code.NOT_FOUND, "the number is not awaited")


OPERATIONS: Final = (list_awaited_numbers, await_shipment, stop_awaiting_shipment)
