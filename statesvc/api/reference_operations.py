"""`.../references`: a shipper's order id and metadata on a number, before or after a scan."""

from typing import Annotated, Final

from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from events.identity.recipes import number_of
from statesvc.api import kit
from statesvc.shipments.references import (
    AttachedReferences,
    AttachedTo,
    NumberErasedError,
    References,
    attach_references,
    read_references,
)

_TAG: Final = "shipments"
_ONE: Final = "/v1/shipments/{carrier_id}/{tracking_number}/references"


class AttachedParcel(TypedDict):
    """The same parcel at another carrier."""

    carrier_id: str
    tracking_number: str


class ShipmentReferences(TypedDict):
    """References that are attached to a number."""

    carrier_id: str
    number: Annotated[str, Field(description="The tracking number as it is compared.")]
    order_id: str | None
    metadata: dict[str, str]
    parcel: AttachedParcel | None
    changed_at: Annotated[AwareDatetime, Field(description="When they were attached.")]


@kit.operation(
    f"GET {_ONE}", scope="read", tag=_TAG, problems=(kit.Code.NOT_FOUND, kit.Code.UNKNOWN_CARRIER)
)
async def get_shipment_references(
    context: kit.Context, call: kit.Call[kit.NumberParameters, None]
) -> ShipmentReferences:
    """Show the references of a number."""
    number = attached_to(context, call.parameters)
    keyring = await context.keyring()
    async with context.pool.connection() as connection:
        attached = await read_references(connection, keyring, number)
    if attached is None:
        raise kit.Problem(
            kit.Code.NOT_FOUND, "no references are attached to this number, or they were erased"
        )
    return _shown(number, attached)


@kit.operation(
    f"PUT {_ONE}",
    scope="ingest",
    tag=_TAG,
    request_headers=kit.WHY_TAKEN,
    problems=(kit.Code.UNKNOWN_CARRIER, kit.Code.CONFLICT),
)
async def set_shipment_references(
    context: kit.Context, call: kit.Call[kit.NumberParameters, References]
) -> ShipmentReferences:
    """Attach an order id and metadata to a number.

    Replaces all earlier references: a field that the body leaves out is removed, and `{}`
    removes all. The number need not have been scanned yet. `GET /v1/shipments?reference=` finds
    its shipments by each value. The log records the caller, with a keyed digest in place of the
    values; an erasure of the number removes them, and after it the call is refused. Keep
    personal data out of them.
    """
    number = attached_to(context, call.parameters)
    if call.body.parcel is not None:
        context.carrier(call.body.parcel.carrier_id)
    keyring = await context.keyring()
    async with context.pool.connection() as connection:
        try:
            attached = await attach_references(
                connection, keyring, number, call.body, actor=call.caller.actor, why=call.why
            )
        except NumberErasedError as error:
            raise kit.Problem(kit.Code.CONFLICT, str(error)) from None
    return _shown(number, attached)


def attached_to(context: kit.Context, wanted: kit.NumberParameters) -> AttachedTo:
    """Return the number as it is compared. Raises the problem that there is no such carrier."""
    carrier_id = context.carrier(wanted.carrier_id).carrier_id
    return AttachedTo(carrier_id, number_of(carrier_id, wanted.tracking_number))


def _shown(number: AttachedTo, attached: AttachedReferences) -> ShipmentReferences:
    references, parcel = attached.references, attached.references.parcel
    return {
        "carrier_id": number.carrier_id,
        "number": number.number,
        "order_id": references.order_id,
        "metadata": references.metadata,
        "parcel": None
        if parcel is None
        else {"carrier_id": parcel.carrier_id, "tracking_number": parcel.tracking_number},
        "changed_at": attached.changed_at,
    }


OPERATIONS: Final = (get_shipment_references, set_shipment_references)
