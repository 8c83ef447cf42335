"""`.../awaited`: numbers of which something must be heard."""

from typing import Annotated, Final

from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from statesvc.api.operation_context import Context
from statesvc.api.reference_operations import ReferencesParameters, attached_to
from statesvc.http.call import Call
from statesvc.http.closed_model import ClosedModel
from statesvc.http.operation import WHY_TAKEN, operation
from statesvc.http.problem import NO_CONTENT, Code, Problem
from statesvc.shipments.awaited import HOURS_MAX, await_number, stop_awaiting
from statesvc.shipments.references import NumberErasedError

_PATH: Final = "/v1/shipments/{carrier_id}/{tracking_number}/awaited"


class AwaitedWithin(ClosedModel):
    """Time to wait."""

    hours: Annotated[int, Field(ge=1, le=HOURS_MAX, description="Within so many hours something must be heard.")]


class AwaitedShown(TypedDict):
    """A number that is awaited."""

    carrier_id: str
    number: Annotated[str, Field(description="The tracking number as it is compared.")]
    hours: int
    awaited_at: Annotated[AwareDatetime, Field(description="From when on the hours count.")]
    due_at: Annotated[AwareDatetime, Field(description="When `shipment.never_heard` follows, unless something is heard before.")]


@operation(f"PUT {_PATH}", scope="ingest", tag="shipments", request_headers=WHY_TAKEN, problems=(Code.UNKNOWN_CARRIER, Code.CONFLICT))
async def await_shipment(context: Context, call: Call[ReferencesParameters, AwaitedWithin]) -> AwaitedShown:
    """Await a tracking number.

    For a number that was registered with its carrier: if no event is heard of it within these hours, from the carrier or from an aggregator
    that names it, `shipment.never_heard` is sent, once. It waits longer while the carrier is held, behind or silent altogether. The same
    hours again change nothing; others count from when it was first awaited. The log says who awaits it.
    """
    number = attached_to(context, call.parameters)
    async with context.pool.connection() as connection:
        try:
            awaited = await await_number(connection, number, call.body.hours, actor=call.caller.actor, why=call.why)
        except NumberErasedError as error:
            raise Problem(Code.CONFLICT, str(error)) from None
    return {
        "carrier_id": number.carrier_id,
        "number": number.number,
        "hours": awaited.hours,
        "awaited_at": awaited.awaited_at,
        "due_at": awaited.due_at,
    }


@operation(
    f"DELETE {_PATH}",
    scope="ingest",
    tag="shipments",
    request_headers=WHY_TAKEN,
    statuses={NO_CONTENT: "it is awaited no longer"},
    problems=(Code.UNKNOWN_CARRIER, Code.NOT_FOUND),
)
async def stop_awaiting_shipment(context: Context, call: Call[ReferencesParameters, None]) -> None:
    """Stop awaiting a tracking number."""
    async with context.pool.connection() as connection:
        if not await stop_awaiting(connection, attached_to(context, call.parameters), actor=call.caller.actor, why=call.why):
            raise Problem(Code.NOT_FOUND, "the number is not awaited")


OPERATIONS: Final = (await_shipment, stop_awaiting_shipment)
