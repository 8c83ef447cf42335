"""`GET /v1/dead-letters...`: what waits for a human."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from aiohttp import web
from pydantic import Field

from events.errors import Cause
from statesvc.api.parameters import Instant, Name
from statesvc.database.pool import Connections
from statesvc.http.closed_model import ClosedModel
from statesvc.http.operation import Reply, Route, answer, parameters, route
from statesvc.http.paging import Page, PageParameters, decode_cursor, encode_cursor
from statesvc.http.problem import Code, Problem
from statesvc.repair.dead_letters.dead_letter import DeadLetter, DeadLetterFilter, DeadLetterKind
from statesvc.repair.dead_letters.listing import (
    NEWEST,
    DeadLetterDetails,
    DeadLetterGroups,
    describe_dead_letter,
    group_dead_letters,
    list_dead_letters,
)


class DeadLetterGroupsParameters(ClosedModel):
    """Which open dead letters to group."""

    kind: DeadLetterKind | None = None
    carrier_id: Name | None = None
    cause: Cause | None = None
    since: Annotated[Instant | None, Field(description="Buried then or later.")] = None
    until: Annotated[Instant | None, Field(description="Buried before then.")] = None


class DeadLetterListParameters(PageParameters):
    """Dead letters, the newest first."""

    kind: DeadLetterKind | None = None
    carrier_id: Name | None = None
    cause: Cause | None = None
    since: Annotated[Instant | None, Field(description="Buried then or later.")] = None
    until: Annotated[Instant | None, Field(description="Buried before then.")] = None
    open: Annotated[bool | None, Field(description="`true`: not settled yet; `false`: settled. Left out: both.")] = None


class DeadLetterParameters(ClosedModel):
    """One dead letter."""

    id: Annotated[int, Field(ge=1, le=NEWEST)]


@dataclass(frozen=True, slots=True)
class DeadLetterCalls:
    """The handlers that read."""

    pool: Connections

    async def list(self, request: web.Request) -> Reply[Page[DeadLetter]]:
        """A page, newest first."""
        asked = parameters(request, DeadLetterListParameters)
        wanted = DeadLetterFilter(
            kind=asked.kind, carrier_id=asked.carrier_id, cause=asked.cause, since=asked.since, until=asked.until, is_open=asked.open
        )
        bound_to: dict[str, Any] = {"list": "dead-letters", **asdict(wanted)}
        before = NEWEST
        if asked.cursor is not None:
            (before,) = decode_cursor(asked.cursor, bound_to, fields=1)
            if not isinstance(before, int) or not 0 < before <= NEWEST:
                raise Problem(Code.INVALID_CURSOR, "the cursor names nothing that is here; start again without one")
        async with self.pool.connection() as connection:
            items, next_before = await list_dead_letters(connection, wanted, before=before, limit=asked.limit)
        return answer(Page(items=items, next_cursor=None if next_before is None else encode_cursor([next_before], bound_to)))

    async def groups(self, request: web.Request) -> Reply[DeadLetterGroups]:
        """The open ones by what went wrong."""
        asked = parameters(request, DeadLetterGroupsParameters)
        wanted = DeadLetterFilter(kind=asked.kind, carrier_id=asked.carrier_id, cause=asked.cause, since=asked.since, until=asked.until)
        async with self.pool.connection() as connection:
            return answer(await group_dead_letters(connection, wanted))

    async def show(self, request: web.Request) -> Reply[DeadLetterDetails]:
        """One dead letter, with everything that is known about it."""
        asked = parameters(request, DeadLetterParameters)
        async with self.pool.connection() as connection:
            details = await describe_dead_letter(connection, asked.id)
        if details is None:
            raise Problem(Code.NOT_FOUND, f"no dead letter has the id {asked.id}")
        return answer(details)


def routes(pool: Connections) -> Sequence[Route]:
    """The calls that read dead letters."""
    calls = DeadLetterCalls(pool)
    return [
        route(
            "GET /v1/dead-letters",
            calls.list,
            operation_id="list_dead_letters",
            summary="List dead letters",
            scope="ops",
            tag="dead letters",
            parameters=DeadLetterListParameters,
            response=Page[DeadLetter],
            problems=(Code.INVALID_CURSOR,),
        ),
        route(
            "GET /v1/dead-letters/groups",
            calls.groups,
            operation_id="list_dead_letter_groups",
            summary="Group dead letters by cause",
            description="The open ones, by kind, cause and carrier, with the details that occur most.",
            scope="ops",
            tag="dead letters",
            parameters=DeadLetterGroupsParameters,
            response=DeadLetterGroups,
        ),
        route(
            "GET /v1/dead-letters/{id}",
            calls.show,
            operation_id="get_dead_letter",
            summary="Show a dead letter",
            description=(
                "With each attempt, earlier and later ones of the same message, and what a replay of it means or what stands in "
                "its way. Of an unknown code: how often it came, on how many shipments, and in which messages lately."
            ),
            scope="ops",
            tag="dead letters",
            parameters=DeadLetterParameters,
            response=DeadLetterDetails,
            problems=(Code.NOT_FOUND,),
        ),
    ]
