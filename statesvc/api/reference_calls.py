"""`.../references`: the order id and metadata that a shipper attaches to a tracking number, before or after its first scan."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from aiohttp import web
from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from events.carriers import CARRIERS
from events.crypto.keyring import Keyring
from events.recipes import number_of
from statesvc.api.parameters import Name
from statesvc.database.pool import Connections
from statesvc.http.api_keys import caller_of
from statesvc.http.closed_model import ClosedModel
from statesvc.http.operation import WHY_TAKEN, Reply, Route, answer, body, parameters, route, why_of
from statesvc.http.problem import Code, Problem
from statesvc.shipments.references import (
    AttachedReferences,
    AttachedTo,
    NumberErasedError,
    References,
    attach_references,
    read_references,
)


class ReferencesParameters(ClosedModel):
    """Whose references."""

    carrier_id: Name
    tracking_number: Annotated[Name, Field(description="In any spelling: case, blanks and hyphens do not matter.")]

    @property
    def number(self) -> AttachedTo:
        """As it is compared. Raises Problem."""
        if self.carrier_id not in CARRIERS:
            raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; `statesvc carriers` lists them")
        return AttachedTo(self.carrier_id, number_of(self.carrier_id, self.tracking_number))


class ShipmentReferences(TypedDict):
    """What is attached to a number."""

    carrier_id: str
    number: Annotated[str, Field(description="The tracking number as it is compared.")]
    order_id: str | None
    metadata: dict[str, str]
    changed_at: Annotated[AwareDatetime, Field(description="When they were attached.")]


@dataclass(frozen=True, slots=True)
class ReferenceCalls:
    """The handlers."""

    pool: Connections
    keyring: Keyring

    async def read(self, request: web.Request) -> Reply[ShipmentReferences]:
        """What is attached now."""
        number = parameters(request, ReferencesParameters).number
        async with self.pool.connection() as connection:
            attached = await read_references(connection, self.keyring, number)
        if attached is None:
            raise Problem(Code.NOT_FOUND, "no references are attached to this number, or they were erased")
        return answer(_shown(number, attached))

    async def attach(self, request: web.Request) -> Reply[ShipmentReferences]:
        """Attaches these in place of what was attached."""
        number = parameters(request, ReferencesParameters).number
        references = body(request, References)
        actor, why = caller_of(request).actor, why_of(request)
        async with self.pool.connection() as connection:
            try:
                attached = await attach_references(connection, self.keyring, number, references, actor=actor, why=why)
            except NumberErasedError as error:
                raise Problem(Code.CONFLICT, str(error)) from None
        return answer(_shown(number, attached))


def _shown(number: AttachedTo, attached: AttachedReferences) -> ShipmentReferences:
    references = attached.references
    return {
        "carrier_id": number.carrier_id,
        "number": number.number,
        "order_id": references.order_id,
        "metadata": references.metadata,
        "changed_at": attached.changed_at,
    }


def routes(pool: Connections, keyring: Keyring) -> Sequence[Route]:
    """The calls about references."""
    calls = ReferenceCalls(pool, keyring)
    path = "/v1/shipments/{carrier_id}/{tracking_number}/references"
    return [
        route(
            f"GET {path}",
            calls.read,
            operation_id="get_shipment_references",
            summary="What a shipper attached to a number",
            scope="read",
            tag="shipments",
            parameters=ReferencesParameters,
            response=ShipmentReferences,
            problems=(Code.NOT_FOUND, Code.UNKNOWN_CARRIER),
        ),
        route(
            f"PUT {path}",
            calls.attach,
            operation_id="set_shipment_references",
            summary="Attach an order id and metadata to a number",
            description="Takes the place of all that was attached: what the body leaves out is gone, and `{}` takes all away. The "
            "number need not have been scanned yet. `GET /v1/shipments?reference=` finds its shipments by each value. The log says "
            "who attached something, with a keyed digest in place of the values; an erasure of the number takes them away, "
            "and after it the call is refused. Nothing personal belongs here.",
            scope="ingest",
            tag="shipments",
            parameters=ReferencesParameters,
            request=References,
            request_headers=WHY_TAKEN,
            response=ShipmentReferences,
            problems=(Code.UNKNOWN_CARRIER, Code.CONFLICT),
        ),
    ]
