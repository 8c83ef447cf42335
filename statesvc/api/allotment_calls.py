"""`GET /v1/allotments`, `PUT /v1/allotments/{carrier_id}`: how much of each claim a carrier gets."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

from aiohttp import web
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from events.carriers import CARRIERS
from events.carriers.carrier import Carrier
from statesvc.api.parameters import Name
from statesvc.api.rollout_calls import WHY_LENGTH_MAX, Wakes
from statesvc.database.pool import Connections
from statesvc.database.wakeups.channels import INBOX
from statesvc.http.api_keys import caller_of
from statesvc.http.operation import Route, body, operation, parameters
from statesvc.http.problem import Code, Problem
from statesvc.http.response import answer
from statesvc.inbox.allotment import IN_FLIGHT_MAX, WEIGHT_MAX, WEIGHT_MIN, allot, allotment_of, list_allotments


class AllotmentParameters(BaseModel):
    """One carrier."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    carrier_id: Annotated[Name, Field(description="A carrier_id.")]


class AllotmentChange(BaseModel):
    """What to set; a member that is left out stays as it is. The log keeps `why`: no personal data there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    weight: Annotated[float, Field(ge=WEIGHT_MIN, le=WEIGHT_MAX, description="Its part of each claim, beside others' 1.")] = 1.0
    in_flight_max: Annotated[
        int | None, Field(ge=1, le=IN_FLIGHT_MAX, description="Messages in workers' hands at a time; null: no bound.")
    ] = None
    why: Annotated[str, Field(max_length=WHY_LENGTH_MAX, pattern=r"^[^\x00]*$")] = ""


class AllotmentShown(BaseModel):
    """Of one carrier."""

    model_config = ConfigDict(extra="forbid")

    carrier_id: str
    weight: float
    in_flight_max: int | None
    in_flight: Annotated[int, Field(description="In workers' hands now.")]
    changed_at: AwareDatetime | None
    changed_by: str | None
    why: str


class Allotments(BaseModel):
    """Of every carrier that was ever given one; all others have weight 1 and no bound."""

    model_config = ConfigDict(extra="forbid")

    items: list[AllotmentShown]
    next_cursor: None


def routes(pool: Connections, waker: Wakes, *, carriers: Mapping[str, Carrier] = CARRIERS) -> Sequence[Route]:
    """The calls about allotments."""

    async def show(_request: web.Request) -> web.StreamResponse:
        async with pool.connection() as connection:
            found = await list_allotments(connection)
        return answer({"items": [asdict(allotment) for allotment in found], "next_cursor": None})

    async def change(request: web.Request) -> web.StreamResponse:
        carrier_id = parameters(request, AllotmentParameters).carrier_id
        wanted = body(request, AllotmentChange)
        if carrier_id not in carriers:
            raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; `statesvc carriers` lists them")
        named = wanted.model_fields_set
        async with pool.connection() as connection, connection.transaction():
            standing = await allotment_of(connection, carrier_id)
            await allot(
                connection,
                carrier_id,
                weight=wanted.weight if "weight" in named else standing.weight,
                in_flight_max=wanted.in_flight_max if "in_flight_max" in named else standing.in_flight_max,
                why=wanted.why,
                actor=caller_of(request).actor,
            )
            allotted = await allotment_of(connection, carrier_id)
        waker.wake(INBOX)
        return answer(asdict(allotted))

    return [
        Route("GET", "/v1/allotments", show, operation(summary="List allotments", scope="ops", tag="queue", response=Allotments)),
        Route(
            "PUT",
            "/v1/allotments/{carrier_id}",
            change,
            operation(
                summary="Set a carrier's weight and bound",
                description=(
                    "In effect at the next claim of every worker. What a carrier leaves of its share goes to the others; the bound counts "
                    "messages in workers' hands. Recorded as an operator action."
                ),
                scope="ops",
                tag="queue",
                parameters=AllotmentParameters,
                request=AllotmentChange,
                response=AllotmentShown,
                problems=(Code.UNKNOWN_CARRIER,),
            ),
        ),
    ]
