"""`/v1/legal-holds`: whose bodies outlive every retention."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from aiohttp import web
from pydantic import Field

from events.carriers import CARRIERS
from statesvc.api.parameters import Name
from statesvc.bodies.legal_holds import NEWEST, HoldRefusal, LegalHold, list_holds, place_hold, release_hold
from statesvc.database.pool import Connections
from statesvc.http.api_keys import caller_of
from statesvc.http.closed_model import ClosedModel
from statesvc.http.operation import Reply, Route, answer, body, parameters, route
from statesvc.http.paging import Page, PageParameters, decode_cursor, encode_cursor
from statesvc.http.problem import CREATED, Code, Problem

Why = Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00]*$", description="Stands in the log: no personal data.")]


class LegalHoldsParameters(PageParameters):
    """Legal holds, the newest first."""

    carrier_id: Annotated[Name | None, Field(description="Only those of this carrier.")] = None
    tracking_number: Annotated[
        Name | None,
        Field(description="Only those on this number. With `carrier_id` in any spelling, without it in none of a carrier's own."),
    ] = None
    released: Annotated[bool, Field(description="Those that were released, too.")] = False


class LegalHoldPlacement(ClosedModel):
    """A hold to place, on all shipments that bear the number."""

    carrier_id: Name
    tracking_number: Annotated[Name, Field(description="In any spelling: case, blanks and hyphens do not matter.")]
    why: Why


class LegalHoldRelease(LegalHoldPlacement):
    """A hold to release."""


@dataclass(frozen=True, slots=True)
class LegalHoldCalls:
    """The handlers."""

    pool: Connections

    async def list(self, request: web.Request) -> Reply[Page[LegalHold]]:
        """A page, newest first."""
        asked = parameters(request, LegalHoldsParameters)
        bound_to: dict[str, Any] = {"list": "legal-holds", **asked.model_dump(include={"carrier_id", "tracking_number", "released"})}
        before = NEWEST
        if asked.cursor is not None:
            (before,) = decode_cursor(asked.cursor, bound_to, fields=1)
            if type(before) is not int or not 0 < before <= NEWEST:
                raise Problem(Code.INVALID_CURSOR, "the cursor names nothing that is here; start again without one")
        async with self.pool.connection() as connection:
            holds, more = await list_holds(
                connection,
                carrier_id=asked.carrier_id,
                tracking_number=asked.tracking_number,
                released_too=asked.released,
                before=before,
                limit=asked.limit,
            )
        return answer(Page(holds, None if more is None else encode_cursor([more], bound_to)))

    async def place(self, request: web.Request) -> Reply[LegalHold]:
        """Places a hold."""
        asked = body(request, LegalHoldPlacement)
        async with self.pool.connection() as connection:
            outcome = await place_hold(connection, **asked.model_dump(), actor=caller_of(request).actor)
        return answer(_held(outcome, asked.carrier_id), status=CREATED)

    async def release(self, request: web.Request) -> Reply[LegalHold]:
        """Releases the hold in force."""
        asked = body(request, LegalHoldRelease)
        async with self.pool.connection() as connection:
            outcome = await release_hold(connection, **asked.model_dump(), actor=caller_of(request).actor)
        return answer(_held(outcome, asked.carrier_id))


def _held(outcome: LegalHold | HoldRefusal, carrier_id: str) -> LegalHold:
    match outcome:
        case LegalHold():
            return outcome
        case _ if carrier_id not in CARRIERS:
            raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; `statesvc carriers` lists them")
        case HoldRefusal.UNKNOWN_NUMBER | HoldRefusal.NONE_STANDS:
            raise Problem(Code.NOT_FOUND, outcome.value)
        case HoldRefusal.STANDS_ALREADY:
            raise Problem(Code.CONFLICT, outcome.value)


def routes(pool: Connections) -> Sequence[Route]:
    """The calls about legal holds."""
    holds = LegalHoldCalls(pool)
    return [
        route(
            "GET /v1/legal-holds",
            holds.list,
            operation_id="list_legal_holds",
            summary="List legal holds",
            scope="audit",
            tag="legal holds",
            parameters=LegalHoldsParameters,
            response=Page[LegalHold],
            problems=(Code.INVALID_CURSOR,),
        ),
        route(
            "POST /v1/legal-holds",
            holds.place,
            operation_id="place_legal_hold",
            summary="Place a legal hold",
            description="The bodies of all messages that name a shipment with this number outlive their archive, and the shipment "
            "is not erased without an explicit override, until the hold is released. Recorded as an operator action.",
            scope="admin",
            tag="legal holds",
            request=LegalHoldPlacement,
            response=LegalHold,
            statuses={CREATED: "placed"},
            problems=(Code.NOT_FOUND, Code.UNKNOWN_CARRIER, Code.CONFLICT),
        ),
        route(
            "POST /v1/legal-holds/release",
            holds.release,
            operation_id="release_legal_hold",
            summary="Release a legal hold",
            description="Retention goes on as for any other shipment. Recorded as an operator action.",
            scope="admin",
            tag="legal holds",
            request=LegalHoldRelease,
            response=LegalHold,
            problems=(Code.NOT_FOUND, Code.UNKNOWN_CARRIER),
        ),
    ]
