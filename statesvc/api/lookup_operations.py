"""`POST /v1/shipments/lookup`: many numbers at once."""

from typing import Annotated, Final

from pydantic import Field
from typing_extensions import TypedDict

from events.carriers import CARRIERS
from statesvc.api import kit
from statesvc.http.unknown_carrier import no_such_carrier
from statesvc.shipments.models import ListedShipment
from statesvc.shipments.shipment_list import PrintedNumber, look_up_numbers

NUMBERS_MAX: Final = 200


class NumberToLookUp(kit.ClosedModel):
    """A tracking number, with its carrier if known."""

    tracking_number: Annotated[
        kit.Name, Field(description="In any spelling: case, blanks and hyphens do not matter.")
    ]
    carrier_id: Annotated[
        kit.Name | None, Field(description="Only this carrier's; left out: whichever carrier's.")
    ] = None


class NumbersToLookUp(kit.ClosedModel):
    """Numbers to look up."""

    numbers: Annotated[list[NumberToLookUp], Field(min_length=1, max_length=NUMBERS_MAX)]


class LookedUpNumber(TypedDict):
    """A number as it was asked for, with its shipments."""

    tracking_number: str
    carrier_id: str | None
    shipments: Annotated[
        list[ListedShipment],
        Field(
            description=(
                "The latest first; 100 at most of each spelling. Empty: nothing was heard of it,"
                " and nothing is attached to it."
            )
        ),
    ]


class LookedUpNumbers(TypedDict):
    """All numbers, in the order asked."""

    items: list[LookedUpNumber]


@kit.operation("POST /v1/shipments/lookup", scope="read", tag="shipments")
async def look_up_shipments(
    context: kit.Context, call: kit.Call[None, NumbersToLookUp]
) -> LookedUpNumbers:
    """Look up many tracking numbers.

    At most 200, of a single carrier or of any; answered in the order asked. A number with
    references but without an event yet is `unknown`, with version 0. Never holds personal
    fields.
    """
    asked = [PrintedNumber(one.tracking_number, one.carrier_id) for one in call.body.numbers]
    async with context.pool.connection() as connection:
        found = await look_up_numbers(connection, asked)
    wrong = [
        kit.Violation(
            f"/body/numbers/{index}/carrier_id", no_such_carrier(one.carrier_id, CARRIERS)
        )
        for index, (one, shipments) in enumerate(zip(asked, found, strict=True))
        # only where nothing was found: shipments of a carrier that was removed are still there
        if one.carrier_id is not None and not shipments and one.carrier_id not in CARRIERS
    ]
    if wrong:
        raise kit.Problem(
            kit.Code.INVALID_REQUEST, "the body breaks the contract", violations=wrong
        )
    return {
        "items": [
            {
                "tracking_number": one.tracking_number,
                "carrier_id": one.carrier_id,
                "shipments": shipments,
            }
            for one, shipments in zip(asked, found, strict=True)
        ]
    }


OPERATIONS: Final = (look_up_shipments,)
